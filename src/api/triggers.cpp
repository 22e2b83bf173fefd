// The triggers that see every write, be it by the functions of this schema, by COPY, by hand or by replication:
// on timers.timer they keep wake_at and died_at, note what the dispatcher must hear of and count what happens, on
// timers.claim they note leases, on timers.process_manager they note that settings changed. They run before the row is
// written, in the writer's transaction, while the writer holds the table's lock; engine/transaction_end.cpp publishes
// the notes.

#include "api/enums.hpp"
#include "api/function.hpp"
#include "core/wake_rule.hpp"
#include "engine/lane_registry.hpp"
#include "engine/transaction_end.hpp"
#include "pg/clock.hpp"

namespace {

TriggerData* trigger_of(FunctionCallInfo call) {
    if (!CALLED_AS_TRIGGER(call))
        pg::raise(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED, "this function is a trigger");
    return reinterpret_cast<TriggerData*>(call->context);
}

// The row as it is to be written.
HeapTuple new_row(const TriggerData* trigger) {
    return TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple : trigger->tg_trigtuple;
}

int column(const TriggerData* trigger, const char* name) {
    TupleDesc shape = RelationGetDescr(trigger->tg_relation);
    const int number = pg::call([=] { return SPI_fnumber(shape, name); });
    if (number <= 0) pg::raise(ERRCODE_UNDEFINED_COLUMN, std::string("timers: column \"") + name + "\" is missing");
    return number;
}

// Where the columns of timers.timer are, for as long as it is the same table.
struct TimerColumns {
    Oid table = InvalidOid;
    int wake_at, fire_at, attempts, status, process_manager, correlation_id, died_at;
    Oid statuses[std::size(core::timer_status_labels)];
};

const TimerColumns& timer_columns(const TriggerData* trigger) {
    static TimerColumns columns;
    const Oid table = RelationGetRelid(trigger->tg_relation);
    if (columns.table != table) {
        columns = {InvalidOid, column(trigger, "wake_at"), column(trigger, "fire_at"), column(trigger, "attempts"),
                   column(trigger, "status"), column(trigger, "process_manager"), column(trigger, "correlation_id"),
                   column(trigger, "died_at"), {}};
        for (std::size_t i = 0; i < std::size(columns.statuses); i++)
            columns.statuses[i] = DatumGetObjectId(api::status_value(core::timer_status_labels[i]));
        columns.table = table;
    }
    return columns;
}

pg::Value value_of(const TriggerData* trigger, HeapTuple tuple, int number) {
    bool null = false;
    const Datum datum = heap_getattr(tuple, number, RelationGetDescr(trigger->tg_relation), &null);
    return {datum, null};
}

// A null, which the table refuses in a moment, is taken for anything but scheduled.
core::TimerStatus status_of(const TriggerData* trigger, HeapTuple tuple) {
    const TimerColumns& columns = timer_columns(trigger);
    const pg::Value status = value_of(trigger, tuple, columns.status);
    std::size_t i = 0;
    while (i + 1 < std::size(columns.statuses) && DatumGetObjectId(status.datum) != columns.statuses[i]) i++;
    return static_cast<core::TimerStatus>(i);
}

// What the rule and the notes need of a row version, each column read once: the trigger runs for every row.
struct TimerRow {
    pg::Value wake_at, fire_at, process_manager;

    TimerRow(const TriggerData* trigger, HeapTuple tuple) {
        const TimerColumns& columns = timer_columns(trigger);
        wake_at = value_of(trigger, tuple, columns.wake_at);
        fire_at = value_of(trigger, tuple, columns.fire_at);
        process_manager = value_of(trigger, tuple, columns.process_manager);
    }

    std::string_view lane() const { return api::view_of(process_manager.datum); }
    core::WakeState state(bool scheduled) const {
        return {scheduled, DatumGetTimestampTz(wake_at.datum), DatumGetTimestampTz(fire_at.datum)};
    }
};

// What a table constraint would check, with an error that names the column; nulls are the table's own business.
void check(const TriggerData* trigger, HeapTuple tuple, const TimerRow& row) {
    if (!row.process_manager.null) api::check_process_manager(row.lane(), "process_manager");
    const pg::Value id = value_of(trigger, tuple, timer_columns(trigger).correlation_id);
    if (!id.null) api::check_correlation_id(api::view_of(id.datum), "correlation_id");
    if (!row.fire_at.null) api::check_finite(DatumGetTimestampTz(row.fire_at.datum), "fire_at");
}

HeapTuple with_instant(const TriggerData* trigger, HeapTuple tuple, int number, core::Instant instant) {
    Datum value = TimestampTzGetDatum(instant);
    bool null = false;
    return pg::call([&] {
        return heap_modify_tuple_by_cols(tuple, RelationGetDescr(trigger->tg_relation), 1, &number, &value, &null);
    });
}

HeapTuple with_wake_at(const TriggerData* trigger, HeapTuple tuple, core::Instant wake_at) {
    return with_instant(trigger, tuple, timer_columns(trigger).wake_at, wake_at);
}

// The dead are found by the moment of their death: who writes one by hand may leave that out.
HeapTuple with_death(const TriggerData* trigger, HeapTuple tuple, core::TimerStatus status) {
    if (status != core::TimerStatus::dead && status != core::TimerStatus::resuming) return tuple;
    const int number = timer_columns(trigger).died_at;
    return value_of(trigger, tuple, number).null ? with_instant(trigger, tuple, number, pg::wall_clock()) : tuple;
}

HeapTuple on_insert(const TriggerData* trigger, HeapTuple tuple) {
    const TimerRow row(trigger, tuple);
    check(trigger, tuple, row);
    if (row.fire_at.null || row.process_manager.null) return tuple;
    // wake_at is the engine's: who brings one along copies rows that were timers before.
    if (!row.wake_at.null) engine::disarm_once();
    const core::Instant fire_at = DatumGetTimestampTz(row.fire_at.datum);
    const core::TimerStatus status = status_of(trigger, tuple);
    if (status != core::TimerStatus::scheduled) {
        tuple = with_death(trigger, tuple, status);
        return row.wake_at.null ? with_wake_at(trigger, tuple, fire_at) : tuple;
    }

    const core::Instant wake_at = core::wake_of_new_row(fire_at, engine::write_floor());
    engine::notes().note(row.lane(), wake_at, fire_at);
    return with_wake_at(trigger, tuple, wake_at);
}

// Postponing, which is what most updates are, counts as nothing.
void count(const TriggerData* trigger, HeapTuple old_tuple, core::TimerStatus old_status, HeapTuple tuple,
           core::TimerStatus status) {
    const TimerColumns& columns = timer_columns(trigger);
    const int old_attempts = DatumGetInt32(value_of(trigger, old_tuple, columns.attempts).datum);
    const int attempts = DatumGetInt32(value_of(trigger, tuple, columns.attempts).datum);
    if (old_status == status && old_attempts == attempts) return;
    const pg::Value lane = value_of(trigger, tuple, columns.process_manager);
    if (lane.null) return;
    const auto fire_at = [&](HeapTuple of) { return DatumGetTimestampTz(value_of(trigger, of, columns.fire_at).datum); };
    core::count_change(engine::counts_of(api::view_of(lane.datum)), {old_status, old_attempts, fire_at(old_tuple)},
                       {status, attempts, fire_at(tuple)}, pg::wall_clock());
}

// A resume ends ahead of the lane's mark, and retention comes by when a scan has raised that.
void note_end_of_resume(const TriggerData* trigger, HeapTuple tuple) {
    const TimerRow row(trigger, tuple);
    if (row.wake_at.null || row.process_manager.null) return;
    const core::Instant wake_at = DatumGetTimestampTz(row.wake_at.datum);
    engine::notes().note(row.lane(), wake_at, wake_at);
}

HeapTuple on_update(const TriggerData* trigger, HeapTuple old_tuple, HeapTuple tuple) {
    const core::TimerStatus old_status = status_of(trigger, old_tuple);
    const core::TimerStatus status = status_of(trigger, tuple);
    count(trigger, old_tuple, old_status, tuple, status);
    if (status != core::TimerStatus::scheduled) {
        const bool ended = status == core::TimerStatus::fired || status == core::TimerStatus::cancelled;
        if (ended && old_status == core::TimerStatus::resuming) note_end_of_resume(trigger, tuple);
        return with_death(trigger, tuple, status);
    }
    const TimerRow row(trigger, tuple);
    check(trigger, tuple, row);
    if (row.fire_at.null || row.wake_at.null || row.process_manager.null) return tuple;

    const TimerRow old_row(trigger, old_tuple);
    const std::string_view lane = row.lane();
    const bool same_lane = lane == old_row.lane();
    const core::WakeState was = old_row.state(old_status == core::TimerStatus::scheduled);
    const core::WakeState is = row.state(true);
    const core::Instant wake_at = core::wake_of_changed_row(was, is, same_lane, engine::write_floor());
    // Where the row is looked at no earlier than before there is nothing to tell.
    if (!was.scheduled || !same_lane || wake_at != was.wake_at) engine::notes().note(lane, wake_at, is.fire_at);
    return wake_at == is.wake_at ? tuple : with_wake_at(trigger, tuple, wake_at);
}

pg::Value on_timer(FunctionCallInfo call) {
    const TriggerData* trigger = trigger_of(call);
    engine::notes().touch();
    HeapTuple tuple = new_row(trigger);
    if (TRIGGER_FIRED_BY_INSERT(trigger->tg_event)) tuple = on_insert(trigger, tuple);
    if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event)) tuple = on_update(trigger, trigger->tg_trigtuple, tuple);
    return {PointerGetDatum(tuple)};
}

pg::Value on_claim(FunctionCallInfo call) {
    const TriggerData* trigger = trigger_of(call);
    HeapTuple tuple = new_row(trigger);
    bool null = false;
    const Datum lease_until =
        heap_getattr(tuple, column(trigger, "lease_until"), RelationGetDescr(trigger->tg_relation), &null);
    if (!null) engine::note_lease(DatumGetTimestampTz(lease_until));
    return {PointerGetDatum(tuple)};
}

pg::Value on_settings(FunctionCallInfo call) {
    const TriggerData* trigger = trigger_of(call);
    if (!engine::adding_defaults()) engine::note_settings_changed();
    return {PointerGetDatum(new_row(trigger))};
}

}  // namespace

TIMERS_TRIGGER(timers_on_timer, on_timer)
TIMERS_TRIGGER(timers_on_claim, on_claim)
TIMERS_TRIGGER(timers_on_settings, on_settings)

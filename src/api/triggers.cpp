// The triggers that see every write, be it by the functions of this schema, by COPY, by hand or by replication:
// on timers.timer they keep wake_at and note what the dispatcher must hear of, on timers.claim they note leases, on
// timers.process_manager they note that settings changed. They run before the row is written, in the writer's
// transaction, while the writer holds the table's lock; engine/transaction_end.cpp publishes the notes.

#include "api/enums.hpp"
#include "api/function.hpp"
#include "core/wake_rule.hpp"
#include "engine/lane_registry.hpp"
#include "engine/transaction_end.hpp"

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
    int wake_at, fire_at, status, process_manager, correlation_id;
    Oid scheduled;
};

const TimerColumns& timer_columns(const TriggerData* trigger) {
    static TimerColumns columns;
    const Oid table = RelationGetRelid(trigger->tg_relation);
    if (columns.table != table) {
        columns = {InvalidOid, column(trigger, "wake_at"), column(trigger, "fire_at"), column(trigger, "status"),
                   column(trigger, "process_manager"), column(trigger, "correlation_id"),
                   DatumGetObjectId(api::status_value("scheduled"))};
        columns.table = table;
    }
    return columns;
}

// Reads one row version of timers.timer.
class TimerRow {
public:
    TimerRow(const TriggerData* trigger, HeapTuple tuple)
        : tuple_(tuple), shape_(RelationGetDescr(trigger->tg_relation)), columns_(timer_columns(trigger)) {}

    bool scheduled() const {
        const pg::Value status = value(columns_.status);
        return !status.null && DatumGetObjectId(status.datum) == columns_.scheduled;
    }
    pg::Value fire_at() const { return value(columns_.fire_at); }
    pg::Value wake_at() const { return value(columns_.wake_at); }
    pg::Value process_manager() const { return value(columns_.process_manager); }
    pg::Value correlation_id() const { return value(columns_.correlation_id); }
    core::WakeState state() const {
        return {scheduled(), DatumGetTimestampTz(wake_at().datum), DatumGetTimestampTz(fire_at().datum)};
    }

private:
    pg::Value value(int number) const {
        bool null = false;
        const Datum datum = heap_getattr(tuple_, number, shape_, &null);
        return {datum, null};
    }

    HeapTuple tuple_;
    TupleDesc shape_;
    const TimerColumns& columns_;
};

// What a table constraint would check, with an error that names the column; nulls are the table's own business.
void check(const TimerRow& row) {
    if (const pg::Value name = row.process_manager(); !name.null)
        api::check_process_manager(api::view_of(name.datum), "process_manager");
    if (const pg::Value id = row.correlation_id(); !id.null)
        api::check_correlation_id(api::view_of(id.datum), "correlation_id");
    if (const pg::Value at = row.fire_at(); !at.null) api::check_finite(DatumGetTimestampTz(at.datum), "fire_at");
}

HeapTuple with_wake_at(const TriggerData* trigger, HeapTuple tuple, core::Instant wake_at) {
    int number = timer_columns(trigger).wake_at;
    Datum value = TimestampTzGetDatum(wake_at);
    bool null = false;
    return pg::call([&] {
        return heap_modify_tuple_by_cols(tuple, RelationGetDescr(trigger->tg_relation), 1, &number, &value, &null);
    });
}

HeapTuple on_insert(const TriggerData* trigger, HeapTuple tuple) {
    const TimerRow row(trigger, tuple);
    check(row);
    if (row.fire_at().null || row.process_manager().null) return tuple;
    // wake_at is the engine's: who brings one along copies rows that were timers before.
    if (!row.wake_at().null) engine::disarm_once();
    const core::Instant fire_at = DatumGetTimestampTz(row.fire_at().datum);
    if (!row.scheduled()) return row.wake_at().null ? with_wake_at(trigger, tuple, fire_at) : tuple;

    const core::Instant wake_at = core::wake_of_new_row(fire_at, engine::write_floor());
    engine::notes().note(api::view_of(row.process_manager().datum), wake_at, fire_at);
    return with_wake_at(trigger, tuple, wake_at);
}

HeapTuple on_update(const TriggerData* trigger, HeapTuple old_tuple, HeapTuple tuple) {
    const TimerRow row(trigger, tuple);
    if (!row.scheduled()) return tuple;
    check(row);
    if (row.fire_at().null || row.wake_at().null || row.process_manager().null) return tuple;

    const TimerRow old_row(trigger, old_tuple);
    const std::string_view lane = api::view_of(row.process_manager().datum);
    const bool same_lane = lane == api::view_of(old_row.process_manager().datum);
    const core::WakeState was = old_row.state();
    const core::WakeState is = row.state();
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

#include "store/schedule.hpp"

#include "pg/clock.hpp"
#include "store/claims.hpp"
#include "store/schedule_sql.hpp"
#include "store/timer_status.hpp"
#include "store/values.hpp"

namespace store {

namespace {

constexpr SqlText request_text = R"sql(
select $1 as timer_id, $2 as process_manager, $3 as correlation_id, $4 as fire_at, $5 as payload)sql";

constexpr SqlText same_id = "t.timer_id operator(pg_catalog.=) excluded.timer_id";

// Mode replace, which most calls have, does without the mode's own condition: a tenth of the time.
constexpr auto replace_text = update_text(request_text, same_id, requested_time, while_scheduled);
constexpr auto insert_or_replace_text = upsert_text(request_text, requested_time, while_scheduled);
constexpr auto move_text = update_text(request_text, same_id, requested_time, as_mode_says);
constexpr auto insert_or_move_text = upsert_text(request_text, requested_time, as_mode_says);

constinit pg::Statement replace{replace_text.characters, UUIDOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, JSONBOID};
constinit pg::Statement insert_or_replace{
    insert_or_replace_text.characters, UUIDOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, JSONBOID};
constinit pg::Statement move{move_text.characters, UUIDOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, JSONBOID, TEXTOID};
constinit pg::Statement insert_or_move{
    insert_or_move_text.characters, UUIDOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, JSONBOID, TEXTOID};

// $6 the longest wait since the timer was first scheduled, or null; $7 that bound for a new timer.
constexpr SqlText bounded_request_text = R"sql(
select $1 as timer_id, $2 as process_manager, $3 as correlation_id, least($4, $7) as fire_at, $5 as payload)sql";
constexpr SqlText bounded_time = "least($4, t.created_at operator(pg_catalog.+) $6)";

constexpr auto postpone_text = update_text(bounded_request_text, same_id, bounded_time, while_scheduled);
constexpr auto insert_or_postpone_text = upsert_text(bounded_request_text, bounded_time, while_scheduled);

constinit pg::Statement postpone{
    postpone_text.characters, UUIDOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, JSONBOID, INTERVALOID, TIMESTAMPTZOID};
constinit pg::Statement insert_or_postpone{insert_or_postpone_text.characters, UUIDOID, TEXTOID, TEXTOID,
                                           TIMESTAMPTZOID, JSONBOID, INTERVALOID, TIMESTAMPTZOID};

constinit pg::Statement insert_once{R"sql(
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, payload)
values ($1, $2, $3, $4, $5)
on conflict (timer_id) do nothing
returning timer_id, true)sql",
                                    UUIDOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, JSONBOID};

constinit pg::Statement cancel_one{R"sql(
update timers.timer t
set status = 'cancelled', updated_at = pg_catalog.clock_timestamp()
where t.timer_id operator(pg_catalog.=) $1
  and (t.status operator(pg_catalog.=) 'scheduled' or t.status operator(pg_catalog.=) 'firing'))sql",
                                   UUIDOID};

// Locks in the order of ids, as every operation on many timers does, so that two of them cannot deadlock.
constinit pg::Statement cancel_all{R"sql(
with found as materialized (
    select t.timer_id from timers.timer t
    where t.correlation_id operator(pg_catalog.=) $2
      and t.process_manager operator(pg_catalog.=) $1
      and (t.status operator(pg_catalog.=) 'scheduled' or t.status operator(pg_catalog.=) 'firing')
    order by t.timer_id
    for no key update of t
), changed as (
    update timers.timer t
    set status = 'cancelled', updated_at = pg_catalog.clock_timestamp()
    from found where t.timer_id operator(pg_catalog.=) found.timer_id
    returning t.timer_id
)
select pg_catalog.count(*), pg_catalog.array_agg(changed.timer_id) from changed)sql",
                                   TEXTOID, TEXTOID};

// What a single upsert came to; nothing when somebody deleted the timer in between and the id is free again.
std::optional<Outcome> outcome_of(const pg::Rows& rows, Datum timer_id) {
    if (!rows.empty()) return DatumGetBool(rows.datum(0, 2)) ? Outcome::inserted : Outcome::rearmed;
    const auto status = status_of(timer_id);
    if (!status) return std::nullopt;
    return *status == "scheduled" ? Outcome::kept : Outcome::too_late;
}

// Runs the statement until it comes to something.
Outcome settle(pg::Statement& statement, std::initializer_list<pg::Value> values) {
    for (;;) {
        if (const auto outcome = outcome_of(statement.run(values), values.begin()->datum)) return *outcome;
    }
}

// Tries the update first if the last timer of this session could be updated: who debounces, goes on debouncing.
Outcome rearm_or_settle(pg::Statement& update, pg::Statement& statement, std::initializer_list<pg::Value> values) {
    static bool last_was_rearmed = false;
    if (last_was_rearmed && update.run(values).count() > 0) return Outcome::rearmed;
    const Outcome outcome = settle(statement, values);
    last_was_rearmed = outcome == Outcome::rearmed;
    return outcome;
}

}  // namespace

pg::Value mode_value(RearmMode mode) {
    switch (mode) {
        case RearmMode::later: return text_value("later");
        case RearmMode::earlier: return text_value("earlier");
        case RearmMode::keep: return text_value("keep");
        default: return text_value("replace");
    }
}

Outcome schedule(const Request& request, RearmMode mode) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const auto& [id, process_manager, correlation_id, fire_at, payload] = request;
    if (mode == RearmMode::keep)
        return settle(insert_once, {{id}, {process_manager}, {correlation_id}, {fire_at}, {payload}});
    if (mode == RearmMode::replace)
        return rearm_or_settle(replace, insert_or_replace,
                               {{id}, {process_manager}, {correlation_id}, {fire_at}, {payload}});
    return rearm_or_settle(move, insert_or_move,
                           {{id}, {process_manager}, {correlation_id}, {fire_at}, {payload}, mode_value(mode)});
}

Outcome debounce(const Request& request, pg::Value max_wait) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    pg::Value bound = pg::null_value;
    if (!max_wait.null) {
        const core::Instant now = pg::wall_clock();
        bound.datum = pg::call([=] {
            return DirectFunctionCall2(timestamptz_pl_interval, TimestampTzGetDatum(now), max_wait.datum);
        });
        bound.null = false;
    }
    const auto& [id, process_manager, correlation_id, fire_at, payload] = request;
    return rearm_or_settle(postpone, insert_or_postpone,
                           {{id}, {process_manager}, {correlation_id}, {fire_at}, {payload}, max_wait, bound});
}

Change cancel(Datum timer_id) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const bool changed = cancel_one.run({{timer_id}}).count() > 0;
    if (changed) drop_claim(timer_id);
    return change_of(changed, timer_id);
}

std::int64_t cancel_correlation(Datum process_manager, Datum correlation_id) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = cancel_all.run({{process_manager}, {correlation_id}});
    const std::int64_t count = count_at(rows, 0, 1);
    if (count > 0) drop_claims(rows.datum(0, 2));
    return count;
}

}  // namespace store

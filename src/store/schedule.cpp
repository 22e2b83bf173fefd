#include "store/schedule.hpp"

#include "store/claims.hpp"
#include "store/timer_status.hpp"
#include "store/values.hpp"

namespace store {

namespace {

// The row trigger sets wake_at. A new row has no xmax; a row that was there has been locked by this transaction
// first, and its new version carries that lock.
constinit pg::Statement upsert{R"sql(
insert into timers.timer as t (timer_id, process_manager, correlation_id, fire_at, payload)
values ($1, $2, $3, $4, $5)
on conflict (timer_id) do update
set process_manager = excluded.process_manager,
    correlation_id = excluded.correlation_id,
    fire_at = excluded.fire_at,
    payload = excluded.payload,
    updated_at = pg_catalog.clock_timestamp()
where t.status operator(pg_catalog.=) 'scheduled'
  and case
      when $6 operator(pg_catalog.=) 'later' then excluded.fire_at operator(pg_catalog.>) t.fire_at
      when $6 operator(pg_catalog.=) 'earlier' then excluded.fire_at operator(pg_catalog.<) t.fire_at
      else true
      end
returning t.xmax operator(pg_catalog.=) '0'::pg_catalog.xid)sql",
                               UUIDOID, TEXTOID, TEXTOID, TIMESTAMPTZOID, JSONBOID, TEXTOID};

constinit pg::Statement insert_once{R"sql(
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, payload)
values ($1, $2, $3, $4, $5)
on conflict (timer_id) do nothing
returning true)sql",
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

Datum mode_name(RearmMode mode) {
    switch (mode) {
        case RearmMode::later: return text_value("later").datum;
        case RearmMode::earlier: return text_value("earlier").datum;
        default: return text_value("replace").datum;
    }
}

}  // namespace

Outcome schedule(const Request& request, RearmMode mode) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Value id{request.timer_id};
    for (;;) {
        const pg::Rows rows =
            mode == RearmMode::keep
                ? insert_once.run({id, {request.process_manager}, {request.correlation_id}, {request.fire_at},
                                   {request.payload}})
                : upsert.run({id, {request.process_manager}, {request.correlation_id}, {request.fire_at},
                              {request.payload}, {mode_name(mode)}});
        if (!rows.empty()) return DatumGetBool(rows.datum(0, 1)) ? Outcome::inserted : Outcome::rearmed;

        const auto status = status_of(request.timer_id);
        if (status.has_value()) return *status == "scheduled" ? Outcome::kept : Outcome::too_late;
        // Somebody deleted the timer in between: the id is free again.
    }
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

#include "store/recovery.hpp"

#include "store/claims.hpp"
#include "store/timer_status.hpp"
#include "store/values.hpp"

namespace store {

namespace {

constinit pg::Statement requeue_one{R"sql(
update timers.timer t
set status = 'scheduled', updated_at = pg_catalog.clock_timestamp()
where t.timer_id operator(pg_catalog.=) $1 and t.status operator(pg_catalog.=) 'firing')sql",
                                    UUIDOID};

constinit pg::Statement kill_one{R"sql(
update timers.timer t
set status = 'dead', last_error = $2, died_at = pg_catalog.clock_timestamp(), updated_at = pg_catalog.clock_timestamp()
where t.timer_id operator(pg_catalog.=) $1
  and (t.status operator(pg_catalog.=) 'scheduled' or t.status operator(pg_catalog.=) 'firing'))sql",
                                 UUIDOID, TEXTOID};

// What it has been through no longer counts against the ceiling, or it would die again at once.
constinit pg::Statement retry_one{R"sql(
update timers.timer t
set status = 'scheduled', fire_at = $2, died_at = null, forgiven = t.attempts,
    updated_at = pg_catalog.clock_timestamp()
where t.timer_id operator(pg_catalog.=) $1 and t.status operator(pg_catalog.=) 'dead')sql",
                                  UUIDOID, TIMESTAMPTZOID};

constinit pg::Statement purge_ended{R"sql(
delete from timers.timer t
where t.updated_at operator(pg_catalog.<) $1
  and (t.status operator(pg_catalog.=) 'fired' or t.status operator(pg_catalog.=) 'cancelled'
       or ($2 and t.status operator(pg_catalog.=) 'dead')))sql",
                                    TIMESTAMPTZOID, BOOLOID};

// $1 lane, $2 from, $3 mark, $4 before, $5 most.
constinit pg::Statement sweep_lane{R"sql(
with seen as materialized (
    select t.ctid as tid, t.wake_at, t.updated_at,
           t.status operator(pg_catalog.=) 'fired' or t.status operator(pg_catalog.=) 'cancelled' as ended
    from timers.timer t
    where t.process_manager operator(pg_catalog.=) $1
      and t.wake_at operator(pg_catalog.>=) $2 and t.wake_at operator(pg_catalog.<) $3
    order by t.wake_at limit $5
), free as materialized (
    select t.ctid as tid
    from seen s join timers.timer t on t.ctid operator(pg_catalog.=) s.tid
    where s.ended and s.updated_at operator(pg_catalog.<) $4
    for update of t skip locked
), gone as (
    delete from timers.timer t using free where t.ctid operator(pg_catalog.=) free.tid
), kept as (
    select s.wake_at, s.updated_at from seen s
    where s.ended and s.updated_at operator(pg_catalog.>=) $4
    order by s.wake_at limit 1
)
select pg_catalog.count(*) operator(pg_catalog.>=) $5, pg_catalog.max(s.wake_at),
       (select k.wake_at from kept k), (select k.updated_at from kept k)
from seen s)sql",
                                   TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID};

}  // namespace

core::Sweep sweep(std::string_view lane, core::Instant from, core::Instant mark, core::Instant before,
                  std::int64_t most) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = sweep_lane.run({text_value(lane), instant_value(from), instant_value(mark),
                                          instant_value(before), {Int64GetDatum(most)}});
    core::Sweep sweep;
    sweep.full = DatumGetBool(rows.datum(0, 1));
    sweep.last_wake = instant_at(rows, 0, 2, core::distant_past);
    sweep.kept_wake = instant_at(rows, 0, 3, core::never);
    sweep.kept_ended = instant_at(rows, 0, 4, core::never);
    return sweep;
}

Change requeue(Datum timer_id) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const bool changed = requeue_one.run({{timer_id}}).count() > 0;
    if (changed) drop_claim(timer_id);
    return change_of(changed, timer_id);
}

Change dead_letter(Datum timer_id, Datum reason) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const bool changed = kill_one.run({{timer_id}, {reason}}).count() > 0;
    if (changed) drop_claim(timer_id);
    return change_of(changed, timer_id);
}

Change retry_dead(Datum timer_id, Datum fire_at) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return change_of(retry_one.run({{timer_id}, {fire_at}}).count() > 0, timer_id);
}

std::int64_t purge(Datum before, bool include_dead) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return static_cast<std::int64_t>(purge_ended.run({{before}, {BoolGetDatum(include_dead)}}).count());
}

}  // namespace store

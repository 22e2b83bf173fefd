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

}  // namespace

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

#include "store/claims.hpp"

#include "store/claim_sql.hpp"
#include "store/settings.hpp"
#include "store/timer_status.hpp"
#include "store/values.hpp"

namespace store {

namespace {

constinit pg::Statement renew_claim{R"sql(
update timers.claim c
set lease_until = pg_catalog.clock_timestamp() operator(pg_catalog.+) coalesce($3, (
        select p.lease from timers.timer t
        join timers.process_manager p on p.process_manager operator(pg_catalog.=) t.process_manager
        where t.timer_id operator(pg_catalog.=) $1), $4)
where c.timer_id operator(pg_catalog.=) $1 and c.token operator(pg_catalog.=) $2
  and c.kind operator(pg_catalog.<>) 'resume'
  and exists (select from timers.timer t
              where t.timer_id operator(pg_catalog.=) $1 and t.status operator(pg_catalog.=) 'firing')
returning c.lease_until)sql",
                                    UUIDOID, UUIDOID, INTERVALOID, INTERVALOID};

constexpr auto complete_text = end_claim + R"sql(
update timers.timer t
set status = 'fired', fired_event_id = $3, updated_at = pg_catalog.clock_timestamp()
from freed where t.timer_id operator(pg_catalog.=) freed.timer_id)sql";

constinit pg::Statement complete_claim{complete_text.characters, UUIDOID, UUIDOID, UUIDOID};

constexpr auto release_text = end_claim + R"sql(
update timers.timer t
set status = 'scheduled', fire_at = $3, last_error = coalesce($4, t.last_error),
    updated_at = pg_catalog.clock_timestamp()
from freed where t.timer_id operator(pg_catalog.=) freed.timer_id)sql";

constinit pg::Statement release_claim{release_text.characters, UUIDOID, UUIDOID, TIMESTAMPTZOID, TEXTOID};

constinit pg::Statement complete_any{R"sql(
update timers.timer t
set status = 'fired', fired_event_id = $2, updated_at = pg_catalog.clock_timestamp()
where t.timer_id operator(pg_catalog.=) $1 and t.status operator(pg_catalog.=) 'firing')sql",
                                     UUIDOID, UUIDOID};

constinit pg::Statement delete_claim{R"sql(
delete from timers.claim where timer_id operator(pg_catalog.=) $1)sql",
                                     UUIDOID};

constinit pg::Statement delete_claims{R"sql(
delete from timers.claim where timer_id operator(pg_catalog.=) any ($1))sql",
                                      UUIDARRAYOID};

constexpr auto requeue_text = end_lapsed("operator(pg_catalog.<>) 'resume'", "'firing'", "status = 'scheduled'");

constinit pg::Statement requeue_claims{requeue_text.characters, TIMESTAMPTZOID, INTERVALOID, INT8OID};

constinit pg::Statement select_next_lease{R"sql(
select c.lease_until from timers.claim c
where c.lease_until operator(pg_catalog.>=) $1 and (not $2 or c.kind operator(pg_catalog.=) 'resume')
order by c.lease_until limit 1)sql",
                                       TIMESTAMPTZOID, BOOLOID};

Held held_of(bool changed, Datum timer_id) {
    if (changed) return {true, std::nullopt};
    return {false, status_of(timer_id)};
}

}  // namespace

Renewed renew(Datum timer_id, Datum token, pg::Value lease) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = renew_claim.run({{timer_id}, {token}, lease, interval_value(default_lease())});
    if (!rows.empty()) return {held_of(true, timer_id), instant_of(rows.datum(0, 1))};
    return {held_of(false, timer_id)};
}

Held complete(Datum timer_id, Datum event_id, Datum token) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return held_of(complete_claim.run({{timer_id}, {token}, {event_id}}).count() > 0, timer_id);
}

Change complete_unclaimed(Datum timer_id, Datum event_id) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const bool changed = complete_any.run({{timer_id}, {event_id}}).count() > 0;
    if (changed) drop_claim(timer_id);
    return change_of(changed, timer_id);
}

void drop_claim(Datum timer_id) { delete_claim.run({{timer_id}}); }
void drop_claims(Datum timer_ids) { delete_claims.run({{timer_ids}}); }

Held release(Datum timer_id, Datum token, Datum fire_at, pg::Value error) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return held_of(release_claim.run({{timer_id}, {token}, {fire_at}, error}).count() > 0, timer_id);
}

std::int64_t requeue_expired(core::Instant as_of, pg::Value older_than, std::int64_t most) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return count_at(requeue_claims.run({instant_value(as_of), older_than, {Int64GetDatum(most)}}), 0, 1);
}

core::Instant next_lease(core::Instant from, bool resumes_only) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_next_lease.run({instant_value(from), {BoolGetDatum(resumes_only)}});
    return rows.empty() ? core::never : instant_of(rows.datum(0, 1));
}

}  // namespace store

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

// Waits for nobody: what a renewal or a completion under way holds is passed over. A claim on a timer that is not firing
// is what an UPDATE by hand leaves behind; it must not stand in the way.
constinit pg::Statement requeue_claims{R"sql(
with lapsed as materialized (
    select c.timer_id, c.token from timers.claim c
    where c.kind operator(pg_catalog.<>) 'resume'
      and c.lease_until operator(pg_catalog.<=) case when $2 is null then $1 else 'infinity' end
      and ($2 is null or c.claimed_at operator(pg_catalog.<=) ($1 operator(pg_catalog.-) $2))
    order by c.lease_until limit $3
    for update of c skip locked
), held as materialized (
    select t.timer_id, l.token
    from lapsed l join timers.timer t on t.timer_id operator(pg_catalog.=) l.timer_id
    where t.status operator(pg_catalog.=) 'firing'
    order by t.fire_at, t.timer_id
    for no key update of t skip locked
), freed as (
    delete from timers.claim c using held h
    where c.timer_id operator(pg_catalog.=) h.timer_id and c.token operator(pg_catalog.=) h.token
    returning c.timer_id
), stray as (
    delete from timers.claim c using lapsed l
    where c.timer_id operator(pg_catalog.=) l.timer_id and c.token operator(pg_catalog.=) l.token
      and not exists (
          select from timers.timer t
          where t.timer_id operator(pg_catalog.=) l.timer_id and t.status operator(pg_catalog.=) 'firing')
), requeued as (
    update timers.timer t
    set status = 'scheduled', updated_at = pg_catalog.clock_timestamp()
    from freed where t.timer_id operator(pg_catalog.=) freed.timer_id
    returning 1
)
select pg_catalog.count(*) from requeued)sql",
                                       TIMESTAMPTZOID, INTERVALOID, INT8OID};

constinit pg::Statement select_next_lease{R"sql(
select c.lease_until from timers.claim c
where c.lease_until operator(pg_catalog.>=) $1 and c.kind operator(pg_catalog.<>) 'resume'
order by c.lease_until limit 1)sql",
                                       TIMESTAMPTZOID};

pg::Value default_lease_interval() {
    return {pg::call([] {
        auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
        interval->time = default_lease();
        return IntervalPGetDatum(interval);
    })};
}

Held held_of(bool changed, Datum timer_id) {
    if (changed) return {true, std::nullopt};
    return {false, status_of(timer_id)};
}

}  // namespace

Renewed renew(Datum timer_id, Datum token, pg::Value lease) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = renew_claim.run({{timer_id}, {token}, lease, default_lease_interval()});
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

core::Instant next_lease(core::Instant from) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_next_lease.run({instant_value(from)});
    return rows.empty() ? core::never : instant_of(rows.datum(0, 1));
}

}  // namespace store

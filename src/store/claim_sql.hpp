// The parts that the statements share which end claims: one by its token, or those whose lease has ended.
#pragma once

#include "store/sql_text.hpp"

namespace store {

// A claim by its holder: the timer's row is locked while it is `status`, the claim is gone. $1 the timer, $2 the token.
template <std::size_t status_size, std::size_t condition_size>
constexpr auto end_claim_of(const char (&status)[status_size], const SqlText<condition_size>& condition) {
    return SqlText(R"sql(
with held as materialized (
    select t.timer_id from timers.timer t
    where t.timer_id operator(pg_catalog.=) $1 and t.status operator(pg_catalog.=) )sql") +
           status + R"sql(
    for no key update of t
), freed as (
    delete from timers.claim c using held
    where c.timer_id operator(pg_catalog.=) held.timer_id
      and c.token operator(pg_catalog.=) $2)sql" +
           condition + R"sql(
    returning c.timer_id
) )sql";
}

// A firing whose claim holds.
inline constexpr auto end_claim = end_claim_of("'firing'", SqlText(""));

// A resume holds no longer than its lease, whether anybody has noticed its end or not.
inline constexpr SqlText resume_holds = R"sql(
      and c.kind operator(pg_catalog.=) 'resume'
      and c.lease_until operator(pg_catalog.>) pg_catalog.clock_timestamp())sql";
inline constexpr auto end_resume = end_claim_of("'resuming'", resume_holds);

// Claims whose lease has ended: at most $3 that ended by $1 or, with $2, are at least that old. What they hold goes
// from `status` to `becomes`. Waits for nobody: what a renewal or a completion under way holds is passed over. A claim
// on a timer that is in another state is what an UPDATE by hand leaves behind; it must not stand in the way.
template <std::size_t kind_size, std::size_t status_size, std::size_t becomes_size>
constexpr auto end_lapsed(const char (&kind)[kind_size], const char (&status)[status_size],
                          const char (&becomes)[becomes_size]) {
    return SqlText(R"sql(
with lapsed as materialized (
    select c.timer_id, c.token from timers.claim c
    where c.kind )sql") +
           kind + R"sql(
      and c.lease_until operator(pg_catalog.<=) case when $2 is null then $1 else 'infinity' end
      and ($2 is null or c.claimed_at operator(pg_catalog.<=) ($1 operator(pg_catalog.-) $2))
    order by c.lease_until limit $3
    for update of c skip locked
), held as materialized (
    select t.timer_id, l.token
    from lapsed l join timers.timer t on t.timer_id operator(pg_catalog.=) l.timer_id
    where t.status operator(pg_catalog.=) )sql" +
           status + R"sql(
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
          where t.timer_id operator(pg_catalog.=) l.timer_id and t.status operator(pg_catalog.=) )sql" +
           status + R"sql()
), moved as (
    update timers.timer t
    set )sql" +
           becomes + R"sql(, updated_at = pg_catalog.clock_timestamp()
    from freed where t.timer_id operator(pg_catalog.=) freed.timer_id
    returning 1
)
select pg_catalog.count(*) from moved)sql";
}

}  // namespace store

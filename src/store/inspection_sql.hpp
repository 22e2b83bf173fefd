// A timer as people look at it: its row, how late it is, when it fires next or why it does not, the settings that
// apply, and who holds it.
#pragma once

#include "store/sql_text.hpp"

namespace store {

// $1 ids, $2 now; for what a process manager leaves open: $3 lease, $4 retry delay, $5 factor, $6 ceiling,
// $7 handler timeout, $8 retention (null: for ever).
inline constexpr SqlText inspection_text = R"sql(
with dispatcher as materialized (
    select case
        when w.state operator(pg_catalog.=) any ('{running,starting,left for a command}') then null
        else coalesce(w.explanation, pg_catalog.format('the dispatcher is %s', w.state)) end as absent
    from timers._workers() w where w.worker operator(pg_catalog.=) 'dispatcher'
)
select a.place, t.timer_id, t.process_manager, t.correlation_id, t.status, t.fire_at, t.payload, t.attempts,
       t.last_error, t.fired_event_id, t.created_at, t.updated_at, t.wake_at, t.died_at, t.forgiven,
       $2 operator(pg_catalog.-) t.created_at as age,
       case when t.status operator(pg_catalog.=) 'fired'
            then greatest(t.updated_at operator(pg_catalog.-) t.fire_at, '0'::pg_catalog.interval)
            when t.fire_at operator(pg_catalog.<=) $2
                 and (t.status operator(pg_catalog.=) 'scheduled' or t.status operator(pg_catalog.=) 'firing')
            then $2 operator(pg_catalog.-) t.fire_at end as lag,
       case when s.attempts_left operator(pg_catalog.<) 0 then 0 else s.attempts_left end as attempts_left,
       case when t.status operator(pg_catalog.=) 'scheduled' and e.explanation is null then greatest(t.fire_at, $2) end
           as next_due,
       e.explanation,
       s.delivery, coalesce(p.paused, false), p.channel, p.handler, p.run_as, p.max_attempts, coalesce(p.lease, $3),
       coalesce(p.retry_delay, $4), coalesce(p.retry_factor, $5), coalesce(p.retry_ceiling, $6), p.max_concurrent,
       coalesce(p.handler_timeout, $7), coalesce(p.retention, $8),
       c.kind, c.claimed_by, c.claimed_at, c.lease_until
from pg_catalog.unnest($1) with ordinality as a (timer_id, place)
cross join lateral (
    select * from timers.timer t where t.timer_id operator(pg_catalog.=) a.timer_id offset 0) t
left join timers.process_manager p on p.process_manager operator(pg_catalog.=) t.process_manager
left join timers.claim c on c.timer_id operator(pg_catalog.=) t.timer_id
cross join dispatcher d
cross join lateral (
    select coalesce(p.delivery, 'outbox') as delivery,
           p.max_attempts operator(pg_catalog.-) (t.attempts operator(pg_catalog.-) t.forgiven) as attempts_left) s
cross join lateral (
    select case
        when t.status operator(pg_catalog.=) 'scheduled' then case
            when p.paused then 'the process manager is paused: timers.unpause() lets it go on'
            when s.attempts_left operator(pg_catalog.<=) 0 then 'has used up max_attempts: it is dead when it is due'
            when s.delivery operator(pg_catalog.=) 'external' then 'workers claim it when it is due: timers.claim_due()'
            when d.absent is not null then d.absent
            when s.delivery operator(pg_catalog.=) 'handler'
                 and pg_catalog.current_setting('durable_timers.handler_workers', true) operator(pg_catalog.=) '0'
            then 'durable_timers.handler_workers is 0: no handler is called' end
        when t.status operator(pg_catalog.=) 'firing' then
            'is being fired: scheduled again when the lease ends without an answer'
        when t.status operator(pg_catalog.=) 'resuming' then 'is being resumed: dead again when the lease ends'
        when t.status operator(pg_catalog.=) 'dead' then
            'is dead: timers.retry_dead() schedules it, timers.claim_dead() resumes it'
        when t.status operator(pg_catalog.=) 'fired' then 'has fired'
        else 'was cancelled' end as explanation) e
order by a.place)sql";

}  // namespace store

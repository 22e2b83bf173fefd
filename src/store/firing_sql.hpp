// The statements of a pass over due timers: put together from the parts that they share. One statement scans, locks,
// moves and delivers, under one snapshot; docs/architecture.md tells why it looks as it does.
#pragma once

#include "store/sql_text.hpp"

namespace store {

// The parts that the statements of a pass share. Parameters:
//   $1 lanes, $2 starts, $3 shares, $4 attempt ceilings, one per task;
//   $5 due: fires what has fire_at up to here; $6 bound: scans up to here; $7 now, for what is written down;
//   $8 how many rows to take hold of at most; $9 the identity that the database must be armed under, or null.

// A task per lane. A task's scan walks the due index from the lane's mark, so it meets neither what has fired nor
// what lies ahead.
// The settings are looked at in the snapshot of the scan: a lane that is paused or delivered otherwise by then takes
// nothing, and has no row in the result.
template <std::size_t size>
constexpr auto tasks_and_scan(const char (&delivered_so)[size]) {
    return SqlText(R"sql(
with task as materialized (
    select a.place, a.lane, a.start_at, a.share, a.ceiling
    from rows from (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4))
        with ordinality as a (lane, start_at, share, ceiling, place)
    left join timers.process_manager p on p.process_manager operator(pg_catalog.=) a.lane
    where not coalesce(p.paused, false) and )sql") + delivered_so + R"sql(
      and ($9 is null or exists (
        select from timers.armed d where d.identity operator(pg_catalog.=) $9 and d.restored_at is null))
), scanned as materialized (
    select task.place, found.tid, found.wake_at
    from task cross join lateral (
        select t.ctid as tid, t.wake_at
        from timers.timer t
        where t.process_manager operator(pg_catalog.=) task.lane
          and t.wake_at operator(pg_catalog.>=) task.start_at
          and t.wake_at operator(pg_catalog.<=) $6
          and t.status operator(pg_catalog.=) 'scheduled'
        order by t.wake_at
        limit task.share) found
), )sql";
}

// Locks what nobody else holds and looks at the newest version. `taken` is the scan, or the part of it to be taken.
// A row's key is where it stands in the lane's order; up to `reach` every row of the lane has been seen. What is due comes
// first, so that the limit falls on that, in its order.
// What is due becomes `moved_status` with `event_id`.
template <std::size_t status_size, std::size_t id_size>
constexpr auto lock_and_move(const char (&moved_status)[status_size], const char (&event_id)[id_size]) {
    return SqlText(R"sql(
reach as materialized (
    select task.place, task.ceiling, seen.full, seen.last_wake, seen.taken, seen.reach
    from task join seen on seen.place operator(pg_catalog.=) task.place
), locked as materialized (
    select s.place, s.tid, t.wake_at, t.fire_at, greatest(t.wake_at, t.fire_at) as key,
           (t.attempts operator(pg_catalog.-) t.forgiven) operator(pg_catalog.>=) r.ceiling as spent,
           greatest(t.wake_at, t.fire_at) operator(pg_catalog.<=) r.reach
               and t.fire_at operator(pg_catalog.<=) $5 as due
    from taken s
    join reach r on r.place operator(pg_catalog.=) s.place
    join timers.timer t on t.ctid operator(pg_catalog.=) s.tid
    where t.status operator(pg_catalog.=) 'scheduled'
    order by due desc, key
    limit $8
    for no key update of t skip locked
), moved as (
    update timers.timer t
    set status = case when not k.due then t.status when k.spent then 'dead' else )sql") +
           moved_status + R"sql( end,
        attempts = case when k.due then t.attempts operator(pg_catalog.+) 1 else t.attempts end,
        wake_at = case when k.due then t.wake_at else t.fire_at end,
        updated_at = case when k.due then $7 else t.updated_at end,
        fired_event_id = )sql" +
           event_id + R"sql(,
        died_at = case when k.due and k.spent then $7 end,
        last_error = case when k.due and k.spent
            then pg_catalog.format('timer exceeded attempt ceiling of %s', (
                select r.ceiling from reach r where r.place operator(pg_catalog.=) k.place))
            else t.last_error end
    from locked k
    where t.ctid operator(pg_catalog.=) k.tid
      and (k.due or k.wake_at operator(pg_catalog.<) k.fire_at)
    returning k.place, k.key, t.timer_id, t.process_manager, t.correlation_id, t.fire_at, t.payload, t.attempts,
              t.last_error, t.fired_event_id, t.status
), )sql";
}

// A row per task, as core::LaneScan has it; read by scan_at().
inline constexpr SqlText scan_columns = R"sql(
    r.place, r.full, r.last_wake,
    coalesce(v.fired, 0) as fired, coalesce(v.killed, 0) as killed, coalesce(v.rearmed, 0) as rearmed,
    case when r.taken operator(pg_catalog.>) coalesce(h.locked, 0) then (
        select pg_catalog.min(s.wake_at) from taken s
        where s.place operator(pg_catalog.=) r.place
          and not s.tid operator(pg_catalog.=) any (select k.tid from locked k)) end as passed_over,
    h.waiting_wake, h.waiting_fire,
    r.taken operator(pg_catalog.-) coalesce(h.locked, 0) as skipped)sql";

inline constexpr SqlText from_scan = R"sql(
from reach r
left join (
    select k.place, pg_catalog.count(*) as locked,
           pg_catalog.min(k.key) filter (where not k.due) as waiting_wake,
           pg_catalog.min(k.fire_at) filter (where not k.due) as waiting_fire
    from locked k group by k.place) h on h.place operator(pg_catalog.=) r.place
left join (
    select m.place,
           pg_catalog.count(*) filter (where m.status operator(pg_catalog.<>) 'scheduled'
                                         and m.status operator(pg_catalog.<>) 'dead') as fired,
           pg_catalog.count(*) filter (where m.status operator(pg_catalog.=) 'dead') as killed,
           pg_catalog.count(*) filter (where m.status operator(pg_catalog.=) 'scheduled') as rearmed
    from moved m group by m.place) v on v.place operator(pg_catalog.=) r.place
)sql";

// Firing takes all of the scan.
inline constexpr SqlText take_all = R"sql(
taken as (select place, tid, wake_at from scanned
), seen as materialized (
    select task.place, pg_catalog.count(s.tid) as taken, pg_catalog.max(s.wake_at) as last_wake,
           pg_catalog.count(s.tid) operator(pg_catalog.>=) task.share as full,
           case when pg_catalog.count(s.tid) operator(pg_catalog.>=) task.share
               then pg_catalog.max(s.wake_at) else $6 end as reach
    from task left join scanned s on s.place operator(pg_catalog.=) task.place group by task.place, task.share
), )sql";

// Claiming takes the earliest rows over all lanes: $11 of them. When it leaves out some of any lane, it has seen no lane
// any further than that.
inline constexpr SqlText take_earliest = R"sql(
taken as materialized (
    select place, tid, wake_at from scanned order by wake_at limit $11
), seen as materialized (
    select l.place, l.taken, l.last_wake, l.full,
           case when pg_catalog.bool_or(l.full) over () then pg_catalog.max(l.last_wake) over () else $6 end as reach
    from (
        select task.place, pg_catalog.count(s.tid) as taken, pg_catalog.max(s.wake_at) as last_wake,
               a.scanned operator(pg_catalog.>=) task.share
                   or a.scanned operator(pg_catalog.>) pg_catalog.count(s.tid) as full
        from task
        left join taken s on s.place operator(pg_catalog.=) task.place
        cross join lateral (
            select pg_catalog.count(*) as scanned from scanned c
            where c.place operator(pg_catalog.=) task.place) a
        group by task.place, task.share, a.scanned) l
), )sql";

inline constexpr auto outbox_text =
    tasks_and_scan("coalesce(p.delivery, 'outbox') operator(pg_catalog.=) 'outbox'") + take_all +
    lock_and_move("'fired'", "case when k.due and not k.spent "
                             "then timers._event_id(t.timer_id, t.fire_at) else t.fired_event_id end") + R"sql(
delivered as (
    insert into timers.outbox
        (event_id, timer_id, process_manager, correlation_id, fire_at, fired_at, attempts, payload)
    select m.fired_event_id, m.timer_id, m.process_manager, m.correlation_id, m.fire_at, $7, m.attempts, m.payload
    from moved m
    where m.status operator(pg_catalog.=) 'fired'
    order by m.key
)
select )sql" + scan_columns + from_scan + "order by r.place";

// $10 leases in microseconds, a lane each; the claim's kind and holder.
template <std::size_t kind_size, std::size_t holder_size>
constexpr auto claim_moved(const char (&kind)[kind_size], const char (&holder)[holder_size]) {
    return SqlText(R"sql(
lease as (
    select a.place, a.lease from pg_catalog.unnest($10) with ordinality as a (lease, place)
), claimed as (
    insert into timers.claim as c (timer_id, token, kind, attempt, lease_until, claimed_by)
    select m.timer_id, pg_catalog.gen_random_uuid(), )sql") +
           kind + R"sql(, m.attempts,
           $7 operator(pg_catalog.+) pg_catalog.make_interval(
               secs => l.lease operator(pg_catalog./) 1000000::pg_catalog.float8), )sql" +
           holder + R"sql(
    from moved m join lease l on l.place operator(pg_catalog.=) m.place
    where m.status operator(pg_catalog.=) 'firing'
    on conflict (timer_id) do update
    set token = excluded.token, kind = excluded.kind, attempt = excluded.attempt, claimed_at = excluded.claimed_at,
        lease_until = excluded.lease_until, claimed_by = excluded.claimed_by
    returning c.timer_id, c.token, c.lease_until
), )sql";
}

// $11 channels, a lane each. The payload travels along if all of it fits; a message holds less than 8000 bytes.
inline constexpr auto notify_text =
    tasks_and_scan("p.delivery operator(pg_catalog.=) 'notify'") + take_all +
    lock_and_move("'firing'", "t.fired_event_id") +
    claim_moved("'notify'", "'dispatcher'") + R"sql(
channel as (
    select a.place, a.channel from pg_catalog.unnest($11) with ordinality as a (channel, place)
), message as (
    select m.key, h.channel,
           pg_catalog.jsonb_build_object(
               'timer_id', m.timer_id, 'process_manager', m.process_manager, 'correlation_id', m.correlation_id,
               'fire_at', m.fire_at, 'attempt', m.attempts, 'claim_token', c.token, 'payload', m.payload
           )::pg_catalog.text as whole,
           pg_catalog.jsonb_build_object(
               'timer_id', m.timer_id, 'process_manager', m.process_manager, 'fire_at', m.fire_at,
               'attempt', m.attempts, 'claim_token', c.token, 'fetch', true
           )::pg_catalog.text as flag
    from moved m
    join claimed c on c.timer_id operator(pg_catalog.=) m.timer_id
    join channel h on h.place operator(pg_catalog.=) m.place
), sent as materialized (
    select pg_catalog.pg_notify(o.channel, case when pg_catalog.octet_length(o.whole) operator(pg_catalog.<) 8000
                                           then o.whole else o.flag end) as notified
    from (select m.channel, m.whole, m.flag from message m order by m.key) o
)
select )sql" + scan_columns + ", (select pg_catalog.count(*) from sent)" + from_scan + "order by r.place";

// $11 how many at most, $12 who claims, $13 as what. A row per claimed timer, and one per lane without any.
inline constexpr auto claim_text =
    tasks_and_scan("($13 operator(pg_catalog.<>) 'handler' or p.delivery operator(pg_catalog.=) 'handler')") + take_earliest +
    lock_and_move("'firing'", "t.fired_event_id") +
    claim_moved("$13", "$12") + R"sql(
held as (
    select m.place, m.key, m.timer_id, m.process_manager, m.correlation_id, m.fire_at, m.payload, m.attempts,
           m.last_error, c.token, c.lease_until
    from moved m join claimed c on c.timer_id operator(pg_catalog.=) m.timer_id
)
select )sql" + scan_columns + R"sql(,
    d.timer_id, d.process_manager, d.correlation_id, d.fire_at, d.payload, d.attempts, d.last_error, d.token,
    d.lease_until)sql" + from_scan + R"sql(
left join held d on d.place operator(pg_catalog.=) r.place
order by d.key, r.place)sql";

}  // namespace store

-- Intent: a pass delivers what is due at as_of into the outbox, and nothing else: one row each, with the timer's own
-- data and a deterministic event id.
set timezone = 'UTC';
set datestyle = 'ISO';

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-8003-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.events() returns table (
    number integer, process_manager text, fire_at timestamptz, payload jsonb)
language sql stable as $$
    select right(o.timer_id::text, 12)::integer, o.process_manager, o.fire_at, o.payload
    from timers.outbox o order by o.position
$$;

-- Everything happens in transactions that are rolled back: no worker sees any of it.
begin;
select timers.schedule(pg_temp.id(1), 'regress fire', 'saga 1', '2090-01-01 00:00+00', '{"turn": 1}');
select timers.fire_due();
select timers.fire_due('2089-12-31 23:59:59.999999+00');
select timers.fire_due('2090-01-01 00:00+00');
select position > 0 as positioned, event_id = '69f1f964-00ef-5a1c-8ce6-2bdb6e84b954' as known_id, timer_id,
       process_manager,
       correlation_id, fire_at, fired_at between now() and clock_timestamp() as fired_now, attempts, payload
from timers.outbox;
select status, attempts, fire_at, fired_event_id = '69f1f964-00ef-5a1c-8ce6-2bdb6e84b954' as known_id, last_error,
       died_at
from timers.lookup(pg_temp.id(1));
-- Fired is final.
select timers.fire_due('2095-01-01 00:00+00');
select timers.schedule(pg_temp.id(1), 'regress fire', 'saga 1', '2090-01-02 00:00+00');
select timers.cancel(pg_temp.id(1));
select count(*) from timers.outbox;
-- When its row is gone the id may be used again, and the new firing has a new event id.
delete from timers.timer where timer_id = pg_temp.id(1);
select timers.schedule(pg_temp.id(1), 'regress fire', 'saga 1', '2090-01-02 00:00+00');
select timers.fire_due('2095-01-01 00:00+00');
select event_id = 'de66f6c4-97e6-5d05-9ea4-666e596df255' as known_id, count(*) over () from timers.outbox
order by position desc limit 1;
rollback;

-- Nothing due, nothing done.
begin;
select timers.fire_due();
rollback;

-- as_of lies in the past: what came due later waits.
begin;
select timers.schedule(pg_temp.id(1), 'regress fire', 'saga', '2001-01-01 00:00+00');
select timers.schedule(pg_temp.id(2), 'regress fire', 'saga', '2003-01-01 00:00+00');
select timers.fire_due('2000-12-31 00:00+00'), timers.fire_due('2002-01-01 00:00+00');
select * from pg_temp.events();
select timers.fire_due();
select * from pg_temp.events();
rollback;

-- In the order of fire_at inside a process manager, however they were scheduled; at most max_timers at a time.
begin;
select timers.schedule(pg_temp.id(n), 'regress fire', 'saga', timestamptz '2090-01-01 00:00+00' + n * interval '1 day')
from unnest(array[4, 1, 3, 5, 2]) n;
select timers.fire_due('2095-01-01 00:00+00', 2), timers.fire_due('2095-01-01 00:00+00', 2),
       timers.fire_due('2095-01-01 00:00+00', 2), timers.fire_due('2095-01-01 00:00+00', 2);
select * from pg_temp.events();
rollback;

-- Overdue ones in the order in which they were scheduled, since all were due at once.
begin;
select timers.schedule(pg_temp.id(n), 'regress fire', 'saga', timestamptz '2001-01-01 00:00+00' + n * interval '1 day')
from unnest(array[4, 1, 3, 5, 2]) n;
select timers.fire_due();
select * from pg_temp.events();
rollback;

-- Postponed, pulled earlier, cancelled: what counts is the last word.
begin;
select timers.schedule(pg_temp.id(n), 'regress fire', 'saga', timestamptz '2090-01-01 00:00+00' + n * interval '1 day',
                       to_jsonb(n))
from generate_series(1, 4) n;
select timers.schedule(pg_temp.id(1), 'regress fire', 'saga', '2090-02-01 00:00+00', '"postponed"');
select timers.schedule(pg_temp.id(4), 'regress fire', 'saga', '2090-01-01 00:00+00', '"earlier"');
select timers.cancel(pg_temp.id(2));
select timers.fire_due('2090-01-15 00:00+00');
select * from pg_temp.events();
select wake_at, fire_at from timers.lookup(pg_temp.id(1));
select timers.fire_due('2090-01-31 23:59+00'), timers.fire_due('2090-02-01 00:00+00');
select * from pg_temp.events();
rollback;

-- Only what is delivered by the server: not what is paused, nor what applications claim.
begin;
select timers.configure('regress external', 'external');
select timers.pause('regress paused');
select timers.schedule(pg_temp.id(1), 'regress external', 'saga', '2090-01-01 00:00+00');
select timers.schedule(pg_temp.id(2), 'regress paused', 'saga', '2090-01-01 00:00+00');
select timers.schedule(pg_temp.id(3), 'regress fire', 'saga', '2090-01-01 00:00+00');
select timers.fire_due('2095-01-01 00:00+00');
select * from pg_temp.events();
select timers.unpause('regress paused');
select timers.fire_due('2095-01-01 00:00+00');
select * from pg_temp.events();
rollback;

-- A ceiling of attempts: the attempt that would exceed it kills the timer instead, with its reason.
begin;
select timers.configure('regress ceiling', max_attempts => 0);
select timers.schedule(pg_temp.id(1), 'regress ceiling', 'saga', '2090-01-01 00:00+00');
select timers.schedule(pg_temp.id(2), 'regress fire', 'saga', '2090-01-01 00:00+00');
select timers.fire_due('2095-01-01 00:00+00');
select * from pg_temp.events();
select status, last_error, died_at is not null as died, fired_event_id from timers.lookup(pg_temp.id(1));
select timers.fire_due('2095-01-01 00:00+00');
rollback;

-- Notify: the timer is firing under a claim of the dispatcher until somebody acknowledges it.
begin;
select timers.configure('regress notify', 'notify', 'regress_channel', lease => '90 seconds');
select timers.schedule(pg_temp.id(1), 'regress notify', 'saga', '2090-01-01 00:00+00', '{"turn": 1}');
select timers.fire_due('2095-01-01 00:00+00');
select status, attempts from timers.lookup(pg_temp.id(1));
select kind, attempt, claimed_by, lease_until - claimed_at between '89 seconds' and '91 seconds' as lease
from timers.claim;
select count(*) from timers.outbox;
-- Not acknowledged: as of the end of its lease it is due again.
select timers.requeue_stuck(as_of => now());
select timers.fire_due('2095-01-01 00:00+00');
select attempt from timers.claim;
-- Acknowledged.
select timers.mark_fired(timer_id, 'aaaaaaaa-0000-4000-8000-000000000000', token) from timers.claim;
select status, attempts, fired_event_id from timers.lookup(pg_temp.id(1));
select count(*) from timers.claim;
rollback;

select (select count(*) from timers.timer) as timers, (select count(*) from timers.outbox) as events,
       (select count(*) from timers.claim) as claims;

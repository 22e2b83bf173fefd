-- Intent: a claim is what a worker of one's own holds: a token and a lease that complete, renew, release or lapse, each
-- exactly as published.
set timezone = 'UTC';
set datestyle = 'ISO';

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-8004-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.number(id uuid) returns integer
language sql immutable as $$ select right(id::text, 12)::integer $$;

select timers.configure('regress claims', 'external');
select timers.schedule(pg_temp.id(n), 'regress claims', 'saga',
                       timestamptz '2010-01-01 00:00+00' + n * interval '1 day',
                       to_jsonb(n))
from generate_series(1, 6) n;
select timers.schedule(pg_temp.id(7), 'regress claims', 'saga', '2090-01-01 00:00+00');

-- One at a time unless told otherwise, first come first served; each is an attempt.
select pg_temp.number(timer_id), process_manager, correlation_id, fire_at, payload, attempts, last_error,
       lease_until - clock_timestamp() between '4 minutes' and '5 minutes' as default_lease
from timers.claim_due('regress claims');
select pg_temp.number(timer_id) from timers.claim_due('regress claims', 2);
select status, attempts from timers.lookup(pg_temp.id(1));
select pg_temp.number(timer_id), kind, attempt, claimed_by = format('%s/%s', session_user, pg_backend_pid()) as by_me
from timers.claim order by 1;

-- No two claims alike, and the token is what claim_due returned.
select count(distinct token) from timers.claim;

-- Completing, with the token.
select timers.mark_fired(timer_id, 'aaaaaaaa-0000-4000-8000-000000000001', token) from timers.claim
where timer_id = pg_temp.id(1);
select status, attempts, fired_event_id, last_error from timers.lookup(pg_temp.id(1));
select count(*) from timers.claim where timer_id = pg_temp.id(1);
-- Completing again: the token no longer holds, and nothing changes. Nor without one: not firing any more.
select timers.mark_fired(pg_temp.id(1), 'aaaaaaaa-0000-4000-8000-000000000002', 'aaaaaaaa-0000-4000-8000-000000000002');
\echo :SQLSTATE
select timers.mark_fired(pg_temp.id(1), 'aaaaaaaa-0000-4000-8000-000000000002');
select fired_event_id from timers.lookup(pg_temp.id(1));

-- Completing without a token, by whoever vouches for it.
select timers.mark_fired(pg_temp.id(2), 'aaaaaaaa-0000-4000-8000-000000000003');
select status, fired_event_id from timers.lookup(pg_temp.id(2));
select count(*) from timers.claim where timer_id = pg_temp.id(2);
select timers.mark_fired(pg_temp.id(4), 'aaaaaaaa-0000-4000-8000-000000000004') as scheduled,
       timers.mark_fired(pg_temp.id(999), 'aaaaaaaa-0000-4000-8000-000000000004') as no_such;

-- Renewing: from now, by the lease that is given or set.
select timers.renew(timer_id, token, '1 hour') - clock_timestamp() between '59 minutes' and '1 hour' as an_hour
from timers.claim where timer_id = pg_temp.id(3);
select lease_until - clock_timestamp() between '59 minutes' and '1 hour' as kept from timers.claim
where timer_id = pg_temp.id(3);
select timers.configure('regress claims', lease => '10 minutes');
select timers.renew(timer_id, token) - clock_timestamp() between '9 minutes' and '10 minutes' as as_set
from timers.claim where timer_id = pg_temp.id(3);
select timers.renew(pg_temp.id(3), 'aaaaaaaa-0000-4000-8000-000000000005');
\echo :SQLSTATE

-- Releasing: scheduled again, the attempt stays counted, the error is kept.
select timers.release(timer_id, token, '2090-03-01 00:00+00', 'busy') from timers.claim where timer_id = pg_temp.id(3);
select status, attempts, fire_at, last_error from timers.lookup(pg_temp.id(3));
select count(*) from timers.claim;
select timers.release(pg_temp.id(3), 'aaaaaaaa-0000-4000-8000-000000000005');
\echo :SQLSTATE
-- Released at once it queues behind what is due; without an error the last one stays.
select pg_temp.number(timer_id)
from timers.claim_due('regress claims', as_of => '2090-03-01 00:00+00', max_timers => 1);
select timers.release(timer_id, token) from timers.claim;
select pg_temp.number(timer_id) from timers.claim_due('regress claims', 10);
select pg_temp.number(timer_id), attempts, last_error from timers.timer where status = 'firing' order by 1;
-- Nothing more is due.
select count(*) from timers.claim_due('regress claims', 10);

-- Requeueing: what has lapsed as of then, or has been held for that long. fire_at stays, so it is due at once.
select timers.requeue_stuck();
select timers.requeue_stuck('1 hour');
select timers.requeue_stuck(as_of => clock_timestamp() + interval '9 minutes');
select timers.requeue_stuck('1 hour', clock_timestamp() + interval '59 minutes');
select timers.requeue_stuck('1 hour', clock_timestamp() + interval '61 minutes');
select pg_temp.number(timer_id), status, attempts, fire_at < now() as due from timers.timer
where attempts > 0 and status <> 'fired' order by 1;
select count(*) from timers.claim;
select timers.requeue_stuck(as_of => '2099-01-01 00:00+00');

-- A lease of the call goes before the one that is set.
delete from timers.timer;
select timers.schedule(pg_temp.id(10), 'regress claims', 'saga', '2010-01-01 00:00+00');
select lease_until - clock_timestamp() between '50 seconds' and '1 minute' as of_the_call
from timers.claim_due('regress claims', 1, '1 minute');
select timers.requeue_stuck(as_of => clock_timestamp() + interval '1 minute');

-- Cancelling takes the claim along.
select timer_id, claim_token from timers.claim_due('regress claims') \gset
select timers.cancel(:'timer_id');
select count(*) from timers.claim;
select timers.renew(:'timer_id', :'claim_token');
\echo :SQLSTATE
select timers.mark_fired(:'timer_id', 'aaaaaaaa-0000-4000-8000-000000000006', :'claim_token');
\echo :SQLSTATE
select timers.release(:'timer_id', :'claim_token');
\echo :SQLSTATE

-- A ceiling: the claim that would exceed it kills the timer, and goes on to the next.
select timers.configure('regress claims', max_attempts => 1);
select timers.schedule(pg_temp.id(20), 'regress claims', 'saga', '2010-01-01 00:00+00');
select pg_temp.number(timer_id), attempts from timers.claim_due('regress claims');
select timers.requeue_stuck(as_of => '2099-01-01 00:00+00');
select timers.schedule(pg_temp.id(21), 'regress claims', 'saga', '2010-01-01 00:00+00');
select pg_temp.number(timer_id), attempts from timers.claim_due('regress claims');
select pg_temp.number(timer_id), status, attempts, last_error, died_at is not null as died
from timers.timer where status = 'dead' order by 1;
-- A ceiling of nothing lets nothing be claimed.
select timers.configure('regress ceiling', 'external', max_attempts => 0);
select timers.schedule(pg_temp.id(22), 'regress ceiling', 'saga', '2010-01-01 00:00+00');
select count(*) from timers.claim_due('regress ceiling');
select status, last_error from timers.lookup(pg_temp.id(22));

-- A paused process manager gives nothing out.
select timers.schedule(pg_temp.id(23), 'regress claims', 'saga', '2010-01-01 00:00+00');
select timers.pause('regress claims');
select count(*) from timers.claim_due('regress claims');
select timers.unpause('regress claims');
select count(*) from timers.claim_due('regress claims');

-- Of all process managers, earliest first, whatever the delivery.
begin;
delete from timers.timer;
delete from timers.claim;
select timers.configure('regress a', 'external'), timers.configure('regress b', 'external');
select timers.schedule(pg_temp.id(n), 'regress ' || lane, 'saga',
                       timestamptz '2090-01-01 00:00+00' + n * interval '1 day')
from unnest(array[30, 31, 32, 33, 34, 35], array['b', 'a', 'a', 'c', 'b', 'a']) u (n, lane);
select pg_temp.number(timer_id), process_manager from timers.claim_due(max_timers => 4, as_of => '2095-01-01 00:00+00');
select pg_temp.number(timer_id), process_manager from timers.claim_due(max_timers => 4, as_of => '2095-01-01 00:00+00');
rollback;

delete from timers.timer;
delete from timers.claim;
delete from timers.process_manager;

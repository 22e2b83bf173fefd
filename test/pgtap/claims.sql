-- Intent: claims as a worker lives with them: a token for every attempt, a lease that holds to the microsecond, stale
-- tokens that change nothing, ceilings that kill at the right attempt, and an order that claims keep.
begin;
select plan(67);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-a003-' || lpad(number::text, 12, '0'))::uuid $$;
-- Claims, keeps what came back, and answers with the numbers of the timers in the order in which they came.
create temporary table held (place serial, timer_id uuid, attempts integer, claim_token uuid, lease_until timestamptz);
create function pg_temp.claim(process_manager text, most integer default 1, lease interval default null,
                              as_of timestamptz default '2095-01-01 00:00+00') returns text
language sql volatile as $$
    with claimed as (
        insert into held (timer_id, attempts, claim_token, lease_until)
        select c.timer_id, c.attempts, c.claim_token, c.lease_until
        from timers.claim_due(claim.process_manager, claim.most, claim.lease, claim.as_of) c
        returning place, timer_id)
    select string_agg(right(timer_id::text, 2)::integer::text, ' ' order by place) from claimed
$$;
create function pg_temp.token(number integer, attempt integer default null) returns uuid
language sql stable as $$
    select h.claim_token from held h
    where h.timer_id = pg_temp.id(number) and h.attempts = coalesce(attempt, h.attempts) order by h.place desc limit 1
$$;
create function pg_temp.row_of(number integer) returns text
language sql stable as $$
    select t::text from timers.timer t where t.timer_id = pg_temp.id(number)
$$;
select timers.configure('tap claims', 'external') \g /dev/null

-- What is due and what is not.
select is(pg_temp.claim('tap claims'), null, 'nothing scheduled, nothing claimed');
select timers.schedule(pg_temp.id(n), 'tap claims', 'saga', timestamptz '2090-01-01 00:00+00' + n * interval '1 hour',
    to_jsonb(n))
from generate_series(1, 6) n \g /dev/null
select is(pg_temp.claim('tap claims', as_of => '2090-01-01 00:59:59.999999+00'), null, 'a microsecond too early');
select is(pg_temp.claim('tap claims', as_of => '2090-01-01 01:00+00'), '1', 'due on the dot');
select is(pg_temp.claim('tap claims', as_of => '2090-01-01 01:00+00'), null, 'claimed once');
select is(pg_temp.claim('tap claims', 10, as_of => '2090-01-01 03:00+00'), '2 3', 'all that is due, in order');
select is(pg_temp.claim('tap other', 10), null, 'another process manager has nothing');

-- What a claim looks like.
select results_eq(
    $$ select c.kind collate "default", c.attempt, c.lease_until - c.claimed_at between '299 seconds' and '301 seconds',
              c.claimed_by collate "default"
       from timers.claim c order by c.timer_id $$,
    format($$ select 'external', 1, true, %L from generate_series(1, 3) $$,
        format('%s/%s', session_user, pg_backend_pid())),
    'a claim for five minutes by this session');
select is((select count(distinct claim_token) from held), 3::bigint, 'every claim has a token of its own');
select bag_eq('select token from timers.claim', 'select claim_token from held',
    'and it is the one that was handed out');
select is((select status from timers.lookup(pg_temp.id(1))), 'firing', 'a claimed timer is firing');
select is((select attempts from timers.lookup(pg_temp.id(1))), 1, 'and that was an attempt');

-- Stale tokens: another's, of another timer, none.
select throws_ok(format('select timers.mark_fired(%L, %L, %L)', pg_temp.id(1), pg_temp.id(1), pg_temp.token(2)),
    'TM003', null,
    'the token of another timer does not complete');
select throws_ok(format('select timers.renew(%L, %L)', pg_temp.id(1), pg_temp.token(2)), 'TM003', null, 'nor renew');
select throws_ok(format('select timers.release(%L, %L)', pg_temp.id(1), pg_temp.token(2)), 'TM003', null,
    'nor release');
select throws_ok(format('select timers.mark_fired(%L, %L, %L)', pg_temp.id(4), pg_temp.id(4), pg_temp.token(1)),
    'TM003', null,
    'no token completes a timer that nobody has claimed');
select throws_ok(format('select timers.mark_fired(%L, %L, %L)', pg_temp.id(99), pg_temp.id(4), pg_temp.token(1)),
    'TM001', null,
    'no such timer');
select throws_ok(format('select timers.renew(%L, %L)', pg_temp.id(99), pg_temp.token(1)), 'TM001', null,
    'nor to renew');
select throws_ok(format('select timers.release(%L, %L)', pg_temp.id(99), pg_temp.token(1)), 'TM001', null,
    'nor to release');
select is((select count(*) from timers.claim), 3::bigint, 'and every claim is as it was');

-- Completing.
select is(timers.mark_fired(pg_temp.id(1), pg_temp.id(50), pg_temp.token(1)), true, 'its own token completes');
select results_eq(
    format('select status, attempts, fired_event_id from timers.lookup(%L)', pg_temp.id(1)),
    format($$ select 'fired'::timers.timer_status, 1, %L::uuid $$, pg_temp.id(50)), 'with the event id of the caller');
select throws_ok(format('select timers.mark_fired(%L, %L, %L)', pg_temp.id(1), pg_temp.id(51), pg_temp.token(1)),
    'TM003', null,
    'not twice');
select is((select fired_event_id from timers.lookup(pg_temp.id(1))), pg_temp.id(50), 'the first event id stays');
select is(timers.requeue_stuck(as_of => '2099-01-01 00:00+00'), 2::bigint, 'a fired timer is not stuck');

-- Requeued and claimed again: another attempt, another token, and the old one is worth nothing.
select is(pg_temp.claim('tap claims', as_of => '2090-01-01 03:00+00', most => 2), '2 3', 'claimed again');
select is((select attempts from timers.lookup(pg_temp.id(2))), 2, 'the second attempt');
select isnt(pg_temp.token(2, 1), pg_temp.token(2, 2), 'with another token');
select pg_temp.row_of(2) as before \gset
select throws_ok(format('select timers.mark_fired(%L, %L, %L)', pg_temp.id(2), pg_temp.id(2), pg_temp.token(2, 1)),
    'TM003', null,
    'the first token does not complete the second attempt');
select throws_ok(format('select timers.release(%L, %L)', pg_temp.id(2), pg_temp.token(2, 1)), 'TM003', null,
    'nor release it');
select throws_ok(format('select timers.renew(%L, %L)', pg_temp.id(2), pg_temp.token(2, 1)), 'TM003', null,
    'nor renew it');
select is(pg_temp.row_of(2), :'before', 'and nothing has changed');

-- Releasing: to a time, with a reason; the attempt stays counted.
select is(timers.release(pg_temp.id(2), pg_temp.token(2), '2090-01-02 00:00+00', 'no answer'), true, 'released');
select results_eq(
    format('select status, attempts, fire_at, last_error from timers.lookup(%L)', pg_temp.id(2)),
    $$ select 'scheduled'::timers.timer_status, 2, '2090-01-02 00:00+00'::timestamptz, 'no answer' $$,
        'to fire again then');
select is(pg_temp.claim('tap claims', as_of => '2090-01-01 03:00+00'), null, 'not before');
select is(pg_temp.claim('tap claims', 10, as_of => '2090-01-02 00:00+00'), '4 5 6 2', 'and then in its turn');
select is((select last_error from timers.lookup(pg_temp.id(2))), 'no answer',
    'the reason stays until there is another');
select is((select c.last_error from (select timers.release(pg_temp.id(2), pg_temp.token(2), '2090-01-02 00:00+00')) r,
                  lateral timers.claim_due('tap claims', as_of => '2090-01-02 00:00+00') c), 'no answer',
    'and is told to the next who claims');

-- Leases, to the microsecond of what is asked for.
select timers.schedule(pg_temp.id(10), 'tap lease', 'saga', '2010-01-01 00:00+00') \g /dev/null
select timers.configure('tap lease', 'external', lease => '2 hours 30 minutes') \g /dev/null
select is(pg_temp.claim('tap lease'), '10', 'claimed under the process manager''s lease');
select is((select lease_until - claimed_at < '2 hours 30 minutes 1 second'
    and lease_until - claimed_at > '2 hours 29 minutes'
           from timers.claim where timer_id = pg_temp.id(10)), true, 'two hours and a half');
select is((select lease_until from held where timer_id = pg_temp.id(10)),
    (select lease_until from timers.claim where timer_id = pg_temp.id(10)),
    'as the worker was told');
delete from timers.timer where timer_id <> pg_temp.id(10);
delete from timers.claim where timer_id <> pg_temp.id(10);
select is(timers.requeue_stuck(as_of => (select lease_until - interval '1 microsecond' from timers.claim)), 0::bigint,
    'it holds until a microsecond before its end');
select is((select status from timers.lookup(pg_temp.id(10))), 'firing', 'still firing');
select is(timers.requeue_stuck(as_of => (select lease_until from timers.claim)), 1::bigint, 'and ends at its end');
select is((select status from timers.lookup(pg_temp.id(10))), 'scheduled', 'scheduled again');
select is((select fire_at from timers.lookup(pg_temp.id(10))), '2010-01-01 00:00+00'::timestamptz, 'for its own time');
select is(pg_temp.claim('tap lease', lease => '1 second'), '10', 'a lease of the call goes before');
select cmp_ok(timers.renew(pg_temp.id(10), pg_temp.token(10), '3 days'), '>',
    clock_timestamp() + interval '2 days 23 hours', 'renewed');
select is(timers.renew(pg_temp.id(10), pg_temp.token(10), '1 minute') < clock_timestamp() + interval '2 minutes', true,
    'renewing sets the end, it does not add to it');
select is(timers.requeue_stuck('1 hour', clock_timestamp() + interval '59 minutes'), 0::bigint, 'not that old yet');
select is(timers.requeue_stuck('1 hour', clock_timestamp() + interval '61 minutes'), 1::bigint,
    'by age, whatever the lease says');

-- Ceilings: the attempt that would be one too many kills.
select timers.configure('tap ceiling', 'external', max_attempts => 2) \g /dev/null
select timers.schedule(pg_temp.id(20), 'tap ceiling', 'saga', '2010-01-01 00:00+00') \g /dev/null
select is(pg_temp.claim('tap ceiling'), '20', 'the first attempt');
select is(timers.requeue_stuck(as_of => '2099-01-01 00:00+00'), 1::bigint, 'stuck');
select is(pg_temp.claim('tap ceiling'), '20', 'the second attempt');
select is(timers.release(pg_temp.id(20), pg_temp.token(20), '2010-01-01 00:00+00', 'again'), true, 'failed');
select is(pg_temp.claim('tap ceiling'), null, 'there is no third');
select results_eq(
    format('select status, last_error, died_at is not null from timers.lookup(%L)', pg_temp.id(20)),
    $$ select 'dead'::timers.timer_status, 'timer exceeded attempt ceiling of 2', true $$, 'it is dead, and says why');
select is((select count(*) from timers.claim where timer_id = pg_temp.id(20)), 0::bigint, 'and nobody holds it');
select is(timers.schedule(pg_temp.id(20), 'tap ceiling', 'saga', '2090-01-01 00:00+00'), 'too_late',
    'nor can it be scheduled');

-- Order: a postponed timer stands where it is due now, however few a claim takes.
select timers.configure('tap order', 'external') \g /dev/null
select timers.schedule(pg_temp.id(30 + n), 'tap order', 'saga',
    timestamptz '2090-01-01 00:00+00' + n * interval '1 hour')
from generate_series(1, 4) n \g /dev/null
select timers.schedule(pg_temp.id(32), 'tap order', 'saga', '2090-01-01 05:00+00'),
       timers.schedule(pg_temp.id(31), 'tap order', 'saga', '2090-01-01 06:00+00') \g /dev/null
select is((select array_agg(pg_temp.claim('tap order')) from generate_series(1, 4)), array['33', '34', '32', '31'],
    'one by one in the order in which they are due');

-- Other people's locks are for the isolation specs; what has ended is never claimed.
select timers.schedule(pg_temp.id(40 + n), 'tap ended', 'saga', '2010-01-01 00:00+00') from generate_series(1, 6) n
\g /dev/null
update timers.timer t set status = s.status
from unnest(enum_range(null::timers.timer_status)) with ordinality as s (status, n)
where t.timer_id = pg_temp.id(40 + s.n::integer);
select is(pg_temp.claim('tap ended', 10), '41', 'of six states one is claimed');

-- as_of may lie in the past, and then only what was due then is claimed.
select timers.configure('tap past', 'external') \g /dev/null
select timers.schedule(pg_temp.id(51), 'tap past', 'saga', '2010-03-01 00:00+00'),
       timers.schedule(pg_temp.id(52), 'tap past', 'saga', '2010-01-01 00:00+00') \g /dev/null
select is(pg_temp.claim('tap past', as_of => '2010-02-01 00:00+00'), '52', 'as of February what was due in January');
select is(pg_temp.claim('tap past', as_of => '2010-02-01 00:00+00'), null, 'and no more');
select is(pg_temp.claim('tap past'), '51', 'by now March has come');
select is((select count(*) from timers.outbox), 0::bigint, 'nothing of all this is in the outbox');

-- Of all process managers the earliest first, also when postponed ones of two others stand in front of it in the index.
delete from timers.timer;
select timers.schedule(pg_temp.id(81), 'tap claims e', 'saga', '2090-01-01 00:00+00'),
    timers.schedule(pg_temp.id(82), 'tap claims f', 'saga', '2090-01-02 00:00+00'),
    timers.schedule(pg_temp.id(83), 'tap claims d', 'saga', '2090-02-01 00:00+00') \g /dev/null
select timers.schedule(pg_temp.id(81), 'tap claims e', 'saga', '2090-03-01 00:00+00'),
    timers.schedule(pg_temp.id(82), 'tap claims f', 'saga', '2090-04-01 00:00+00') \g /dev/null
select is(pg_temp.claim(null), '83', 'the earliest of all');
select is(pg_temp.claim(null, as_of => '2090-03-15 00:00+00'), '81', 'and the next that is due');
select is(pg_temp.claim(null, 5), '82', 'until all are claimed');

select * from finish();
rollback;

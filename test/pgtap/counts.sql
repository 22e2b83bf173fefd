-- Intent: count_due counts what is due and nothing else, whatever has been scanned before; find_stuck and count_stuck
-- tell which firings have been under way for long or often.
begin;
select plan(50);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-b003-' || lpad(number::text, 12, '0'))::uuid $$;
-- 2090-01-01 at that hour.
create function pg_temp.hour(number integer) returns timestamptz
language sql immutable as $$ select timestamptz '2090-01-01 00:00+00' + number * interval '1 hour' $$;
create function pg_temp.schedule(number integer, lane text, fire_at timestamptz,
    mode timers.rearm_mode default 'replace')
returns timers.schedule_outcome
language sql volatile as $$ select timers.schedule(pg_temp.id(number), lane, 'saga', fire_at, '{}', mode) $$;

-- count_due: by time.
select is(timers.count_due(pg_temp.hour(9)), 0::bigint, 'nothing scheduled, nothing due');
select is(timers.count_due(), 0::bigint, 'nor now');
select pg_temp.schedule(n, 'tap due ' || n % 3, pg_temp.hour(n)) from generate_series(1, 9) n \g /dev/null
select is(timers.count_due(pg_temp.hour(5) - interval '1 microsecond'), 4::bigint, 'a microsecond too early');
select is(timers.count_due(pg_temp.hour(5)), 5::bigint, 'on the dot');
select is(timers.count_due(pg_temp.hour(99)), 9::bigint, 'all of them in the end');
select is(timers.count_due(), 0::bigint, 'none now');
select is(timers.count_due('2001-01-01 00:00+00'), 0::bigint, 'none before now');
select pg_temp.schedule(10, 'tap due 0', '2001-01-01 00:00+00') \g /dev/null
select is(timers.count_due(), 1::bigint, 'one of the past is due now');
select is(timers.count_due('2001-01-01 00:00+00'), 1::bigint, 'was due then');
select is(timers.count_due('2000-12-31 00:00+00'), 0::bigint, 'and was not before');

-- By state.
select timers.configure('tap due 0', 'external') \g /dev/null
select timers.cancel(pg_temp.id(1)) \g /dev/null
select is(timers.count_due(pg_temp.hour(9)), 9::bigint, 'not what is cancelled');
select timers.claim_due('tap due 0', 1) \g /dev/null
select is(timers.count_due(pg_temp.hour(9)), 8::bigint, 'nor what is firing');
select timers.dead_letter(pg_temp.id(2), 'given up') \g /dev/null
select is(timers.count_due(pg_temp.hour(9)), 7::bigint, 'nor what is dead');
select timers.retry_dead(pg_temp.id(2), pg_temp.hour(2)) \g /dev/null
select is(timers.count_due(pg_temp.hour(9)), 8::bigint, 'until it is tried again');
select timers.requeue(pg_temp.id(10)) \g /dev/null
select is(timers.count_due(), 1::bigint, 'and what is requeued');
select timers.pause('tap due 2') \g /dev/null
select is(timers.count_due(pg_temp.hour(9)), 9::bigint, 'what is paused is due all the same');

-- What was moved counts where it is now.
select pg_temp.schedule(4, 'tap due 1', pg_temp.hour(20)) \g /dev/null
select is(timers.count_due(pg_temp.hour(9)), 8::bigint, 'one that is postponed');
select is(timers.count_due(pg_temp.hour(20)), 9::bigint, 'counts later');
select pg_temp.schedule(9, 'tap due 0', pg_temp.hour(0)) \g /dev/null
select is(timers.count_due(pg_temp.hour(0)), 2::bigint, 'one that is advanced counts earlier');

-- After scans that went far ahead: what fires no more is not counted, what comes behind them is.
select timers.unpause('tap due 2') \g /dev/null
select is(timers.fire_due(pg_temp.hour(6)), 2, 'a pass fires what no one else claims');
select is(timers.count_due(pg_temp.hour(6)), 4::bigint, 'the rest is due still');
select is((select count(*) from timers.claim_due('tap due 0', 100, '100 years', pg_temp.hour(30))), 4::bigint,
    'workers take theirs');
select is(timers.fire_due(pg_temp.hour(30)), 3, 'and a pass the rest');
select is(timers.count_due(pg_temp.hour(30)), 0::bigint, 'nothing is due');
select pg_temp.schedule(11, 'tap due 1', pg_temp.hour(2)) \g /dev/null
select pg_temp.schedule(12, 'tap due 0', '2001-01-01 00:00+00') \g /dev/null
select is(timers.count_due(pg_temp.hour(2)), 2::bigint, 'but what is new is');
savepoint before;
select pg_temp.schedule(13, 'tap due new', pg_temp.hour(1)) \g /dev/null
select is(timers.count_due(pg_temp.hour(2)), 3::bigint, 'in a new lane, too');
rollback to before;
select is(timers.count_due(pg_temp.hour(2)), 2::bigint, 'and what is rolled back is not');

-- find_stuck: firings under way since these instants, tried so often.
update timers.timer set status = 'cancelled' where status in ('scheduled', 'firing');
delete from timers.claim;
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, attempts)
select pg_temp.id(100 + n), 'tap stuck', 'stuck ' || n, '2001-01-01 00:00+00', 'firing', n from generate_series(1, 4) n;
insert into timers.claim (timer_id, token, kind, attempt, claimed_at, lease_until, claimed_by)
select pg_temp.id(100 + n), pg_temp.id(n), 'external', n, pg_temp.hour(10 - n), pg_temp.hour(20), 'me'
from generate_series(1, 4) n;
-- Not a firing: a resume.
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, attempts)
values (pg_temp.id(110), 'tap stuck', 'resuming', '2001-01-01 00:00+00', 'resuming', 9);
insert into timers.claim (timer_id, token, kind, attempt, claimed_at, lease_until, claimed_by)
values (pg_temp.id(110), pg_temp.id(9), 'resume', 9, pg_temp.hour(0), pg_temp.hour(20), 'me');
create function pg_temp.stuck(min_age interval default null, min_attempts integer default null,
                              as_of timestamptz default pg_temp.hour(10)) returns text
language sql stable as $$
    select coalesce((select string_agg(split_part(s.correlation_id, ' ', 2), ' ' order by s.place) from (
        select f.correlation_id, row_number() over () as place
        from timers.find_stuck(stuck.min_age, stuck.min_attempts, stuck.as_of) f) s),
        'none')
        || case when timers.count_stuck(stuck.min_age, stuck.min_attempts, stuck.as_of) = (
            select count(*) from timers.find_stuck(stuck.min_age, stuck.min_attempts, stuck.as_of))
        then '' else ' miscounted' end
$$;
select is(pg_temp.stuck(), '4 3 2 1', 'all firings, the oldest claim first');
select is(pg_temp.stuck('3 hours'), '4 3', 'those that are at least so old');
select is(pg_temp.stuck(interval '3 hours' + interval '1 microsecond'), '4', 'to the microsecond');
select is(pg_temp.stuck('5 hours'), 'none', 'or none');
select is(pg_temp.stuck(min_attempts => 2), '4 3 2', 'those that were tried so often');
select is(pg_temp.stuck(min_attempts => 5), 'none', 'or none');
select is(pg_temp.stuck('2 hours', 3), '4 3', 'both');
select is(pg_temp.stuck('4 hours', 2), '4', 'must hold');
select is(pg_temp.stuck('3 hours', null, pg_temp.hour(9)), '4', 'at another moment');
select is(pg_temp.stuck('0', null, pg_temp.hour(8)), '4 3 2', 'what was claimed later is not old');
select is(pg_temp.stuck(as_of => pg_temp.hour(0)), '4 3 2 1', 'and without an age the moment does not matter');
select is((select count(*) from timers.find_stuck('1 hour')), 0::bigint, 'by the clock none is an hour old');
select is(timers.count_stuck(), 4::bigint, 'but all are firing');
select set_eq('select f from timers.find_stuck() f', $$ select t from timers.timer t where t.status = 'firing' $$,
    'whole rows of timers.timer');
select is((select c.timer_id from timers.claim c where c.kind = 'resume'), pg_temp.id(110),
    'a resume is no stuck firing');
select timers.mark_fired(pg_temp.id(101), pg_temp.id(1), pg_temp.id(1)) \g /dev/null
select timers.requeue(pg_temp.id(102)) \g /dev/null
select timers.cancel(pg_temp.id(103)) \g /dev/null
select is(pg_temp.stuck(), '4', 'what is completed, requeued or cancelled is not stuck');
select is(timers.requeue_stuck('1 hour', pg_temp.hour(10)), 1::bigint,
    'what is found so is what requeue_stuck requeues');
select is(pg_temp.stuck(), 'none', 'then nothing is');

select throws_ok(call, state, null, call) from (values
    ('select timers.count_due(null)', '22004'),
    ('select timers.count_due(''infinity'')', '22023'),
    ('select timers.count_due(''-infinity'')', '22023')) c (call, state);
select throws_like('select timers.count_due(null)', '%"as_of"%', 'the argument is named');
select throws_like('select timers.count_due(''infinity'')', '%"as_of"%', 'and so it is here');

select * from finish();
rollback;

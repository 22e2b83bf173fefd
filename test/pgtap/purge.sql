-- Intent: purge deletes what ended before an instant and nothing else, and the ids are free again.
begin;
select plan(27);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-b002-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.left_over() returns text
language sql stable as $$
    select coalesce(string_agg(t.correlation_id, ' ' order by t.correlation_id collate "C"), '') from timers.timer t
    where t.process_manager = 'tap purge'
$$;
select timers.configure('tap purge', 'external') \g /dev/null

-- A timer in every state, last changed in 2001 and in 2002.
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, updated_at, died_at,
    fired_event_id)
select pg_temp.id(10 * y + s.place::integer), 'tap purge', s.status || ' ' || 2000 + y, '2090-01-01 00:00+00', s.status,
    timestamptz '2000-01-01 00:00+00' + y * interval '1 year',
    case when s.status = 'dead' then timestamptz '2000-01-01 00:00+00' + y * interval '1 year' end,
    case when s.status = 'fired' then pg_temp.id(s.place::integer) end
from unnest(enum_range(null::timers.timer_status)) with ordinality as s (status, place),
    generate_series(1, 2) y;
insert into timers.claim (timer_id, token, kind, attempt, lease_until, claimed_by)
select t.timer_id, t.timer_id, case t.status when 'firing' then 'external' else 'resume' end, 1, '2095-01-01 00:00+00',
    'me'
from timers.timer t where t.process_manager = 'tap purge' and t.status in ('firing', 'resuming');
insert into timers.outbox (event_id, timer_id, process_manager, correlation_id, fire_at, fired_at, attempts, payload)
select t.fired_event_id, t.timer_id, t.process_manager, t.correlation_id, t.fire_at, t.updated_at, 1, t.payload
from timers.timer t where t.process_manager = 'tap purge' and t.status = 'fired';

select is(timers.purge('2000-06-01 00:00+00'), 0::bigint, 'nothing had ended by then');
select is(timers.purge('2001-01-01 00:00+00'), 0::bigint, 'the instant itself is not before it');
select is(timers.purge('2001-01-01 00:00:00.000001+00'), 2::bigint, 'a microsecond later it is');
select is(pg_temp.left_over(), 'cancelled 2002 dead 2001 dead 2002 fired 2002 firing 2001 firing 2002 '
    'resuming 2001 resuming 2002 scheduled 2001 scheduled 2002', 'what was fired or cancelled by then is gone');
select is(timers.purge('2001-06-01 00:00+00', true), 1::bigint, 'the dead only if asked for');
select is(pg_temp.left_over(), 'cancelled 2002 dead 2002 fired 2002 firing 2001 firing 2002 '
    'resuming 2001 resuming 2002 scheduled 2001 scheduled 2002', 'and only those');
select is(timers.purge(before => now(), include_dead => false), 2::bigint, 'by name');
select is(timers.purge('2095-01-01 00:00+00', true), 1::bigint, 'an instant to come is allowed');
select is(pg_temp.left_over(), 'firing 2001 firing 2002 resuming 2001 resuming 2002 scheduled 2001 scheduled 2002',
    'what has not ended is never purged');
select is((select count(*) from timers.claim), 4::bigint, 'nor are claims');
select is((select count(*) from timers.outbox o where o.process_manager = 'tap purge'), 2::bigint, 'nor events');
select is(timers.purge('2095-01-01 00:00+00', true), 0::bigint, 'what is gone is gone');

-- By the moment at which it ended, not by when it was due.
select timers.schedule(pg_temp.id(90), 'tap purge', 'now', '1999-01-01 00:00+00') \g /dev/null
select timers.cancel(pg_temp.id(90)) \g /dev/null
select is(timers.purge(now()), 0::bigint, 'an old timer that was cancelled just now');
select is((select status from timers.lookup(pg_temp.id(90))), 'cancelled', 'stays until it has been so for a while');
select is(timers.purge(clock_timestamp()), 1::bigint, 'and goes when it has');

-- The id is free: as new, and its event has the id that its time gives it.
select is(timers.schedule(pg_temp.id(90), 'tap purge', 'again', '2090-01-01 00:00+00'), 'inserted',
    'the id is used again');
select results_eq(format('select status, attempts, created_at >= now(), last_error from timers.lookup(%L)',
    pg_temp.id(90)),
    $$ select 'scheduled'::timers.timer_status, 0, true, null::text $$, 'as a new timer');
select is(timers.purge('2095-01-01 00:00+00', true), 0::bigint, 'which is not purged');
select timers.configure('tap purge', 'outbox') \g /dev/null
select timers.fire_due('2090-01-01 00:00+00') \g /dev/null
select is((select fired_event_id from timers.lookup(pg_temp.id(90))),
    timers._event_id(pg_temp.id(90), '2090-01-01 00:00+00'),
    'it fires as a new timer, too');

-- Undone.
savepoint before;
select cmp_ok(timers.purge(clock_timestamp()), '>=', 1::bigint, 'purged');
rollback to before;
select is((select status from timers.lookup(pg_temp.id(90))), 'fired', 'and rolled back');

select throws_ok(call, state, null, call) from (values
    ('select timers.purge(null)', '22004'),
    ('select timers.purge(now(), null)', '22004'),
    ('select timers.purge(''infinity'')', '22023'),
    ('select timers.purge(''-infinity'', true)', '22023')) c (call, state);
select throws_like('select timers.purge(null)', '%"before"%', 'the argument is named');
select throws_like('select timers.purge(now(), null)', '%"include_dead"%', 'each by its name');

select * from finish();
rollback;

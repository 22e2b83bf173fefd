-- Intent: the settings of a process manager hold for it alone, from the statement on in its own transaction, and bad
-- ones are refused.
begin;
select plan(44);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-a004-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.schedule(number integer, process_manager text) returns timers.schedule_outcome
language sql volatile as $$
    select timers.schedule(pg_temp.id(number), process_manager, 'saga', '2090-01-01 00:00+00')
$$;

-- Defaults.
select pg_temp.schedule(1, 'tap fresh') \g /dev/null
select results_eq(
    $$ select delivery, channel collate "default", max_attempts, lease, paused from timers.process_manager
       where process_manager = 'tap fresh' $$,
    $$ select 'outbox'::timers.delivery, null::text, null::integer, null::interval, false $$,
    'with its first timer a process manager has the defaults');
select lives_ok($$ select timers.configure('tap fresh') $$, 'setting nothing is allowed');
select results_eq(
    $$ select delivery, channel collate "default", max_attempts, lease, paused from timers.process_manager
       where process_manager = 'tap fresh' $$,
    $$ select 'outbox'::timers.delivery, null::text, null::integer, null::interval, false $$, 'and changes nothing');

-- Each by itself, the others stay.
select lives_ok($$ select timers.configure('tap fresh', max_attempts => 7) $$, 'a ceiling');
select lives_ok($$ select timers.configure('tap fresh', lease => '3 minutes') $$, 'a lease');
select lives_ok($$ select timers.configure('tap fresh', channel => 'tap_bell') $$, 'a channel');
select lives_ok($$ select timers.configure('tap fresh', 'external') $$, 'a delivery');
select results_eq(
    $$ select delivery, channel collate "default", max_attempts, lease, paused from timers.process_manager
       where process_manager = 'tap fresh' $$,
    $$ select 'external'::timers.delivery, 'tap_bell', 7, interval '3 minutes', false $$, 'all of them');
select is((select max_attempts from timers.process_manager where process_manager = 'tap other'), null,
    'of this process manager alone');
select lives_ok($$ select timers.configure('tap fresh', 'notify') $$, 'notify with the channel that it has');
select is((select delivery from timers.process_manager where process_manager = 'tap fresh'), 'notify', 'is set');

-- Refused, with the argument's name.
select throws_like($$ select timers.configure('tap fresh', max_attempts => -1) $$, '%"max_attempts"%',
    'a negative ceiling');
select throws_like($$ select timers.configure('tap fresh', lease => '0 seconds') $$, '%"lease"%', 'no lease at all');
select throws_like($$ select timers.configure('tap fresh', lease => '-1 day') $$, '%"lease"%', 'a negative lease');
select throws_like($$ select timers.configure('tap fresh', lease => '1 day -30 hours') $$, '%"lease"%',
    'a lease that sums up to less than nothing');
select throws_like($$ select timers.configure('tap fresh', channel => '') $$, '%"channel"%', 'an empty channel');
select throws_like($$ select timers.configure('tap fresh', channel => repeat('ü', 32)) $$, '%"channel"%',
    'a channel of 64 bytes');
select throws_like($$ select timers.configure('tap bare', 'notify') $$, '%"channel"%', 'notify without a channel');
select throws_like($$ select timers.configure(repeat('ü', 128)) $$, '%"process_manager"%', 'a name of 256 bytes');
select lives_ok($$ select timers.configure(repeat('ü', 127)) $$, 'a name of 254 bytes');
select is((select count(*) from timers.process_manager where process_manager = 'tap bare'), 0::bigint,
    'what is refused leaves no row');
select results_eq(
    $$ select delivery, channel collate "default", max_attempts, lease, paused from timers.process_manager
       where process_manager = 'tap fresh' $$,
    $$ select 'notify'::timers.delivery, 'tap_bell', 7, interval '3 minutes', false $$, 'and changes none');

-- The lease of the server's settings holds where a process manager has none.
select pg_temp.schedule(2, 'tap lease') \g /dev/null
select is((select c.lease_until - clock_timestamp() between '4 minutes 50 seconds' and '5 minutes'
           from timers.claim_due('tap lease', as_of => '2090-01-01 00:00+00') c), true, 'five minutes by default');

-- Those are done with.
select timers.cancel(pg_temp.id(1)), timers.cancel(pg_temp.id(2)) \g /dev/null

-- Pausing: that lane alone, for every way of firing, and whatever came due meanwhile fires afterwards.
select pg_temp.schedule(10, 'tap quiet'), pg_temp.schedule(11, 'tap lively') \g /dev/null
select is(timers.pause('tap quiet'), true, 'paused');
select is(timers.pause('tap quiet'), false, 'already');
select is(timers.fire_due('2091-01-01 00:00+00'), 1, 'the other one fires');
select is((select status from timers.lookup(pg_temp.id(10))), 'scheduled', 'not the paused one');
select is((select attempts from timers.lookup(pg_temp.id(10))), 0, 'without an attempt');
select is((select count(*) from timers.claim_due('tap quiet', as_of => '2091-01-01 00:00+00')), 0::bigint,
    'nor is it claimed');
select is((select count(*) from timers.claim_due(max_timers => 10, as_of => '2091-01-01 00:00+00')), 0::bigint,
    'nor among all');
select is(pg_temp.schedule(12, 'tap quiet'), 'inserted', 'it may be scheduled meanwhile');
select is(timers.schedule(pg_temp.id(10), 'tap quiet', 'saga', '2090-02-01 00:00+00'), 'rearmed', 'moved');
select is(timers.cancel(pg_temp.id(12)), true, 'and cancelled');
select is(timers.unpause('tap quiet'), true, 'unpaused');
select is(timers.unpause('tap quiet'), false, 'already, too');
select is(timers.fire_due('2091-01-01 00:00+00'), 1, 'what was held back fires');
select is((select status from timers.lookup(pg_temp.id(10))), 'fired', 'once');

-- Moving a timer into a paused lane, and out of it.
select timers.pause('tap quiet') \g /dev/null
select pg_temp.schedule(13, 'tap lively'), pg_temp.schedule(14, 'tap quiet') \g /dev/null
select is(pg_temp.schedule(13, 'tap quiet'), 'rearmed', 'into it');
select is(pg_temp.schedule(14, 'tap lively'), 'rearmed', 'out of it');
select is(timers.fire_due('2091-01-01 00:00+00'), 1, 'one fires');
select is((select status from timers.lookup(pg_temp.id(14))), 'fired', 'the one that left');

-- Changing the delivery of what is scheduled already.
select timers.unpause('tap quiet'), timers.configure('tap quiet', 'external') \g /dev/null
select is(timers.fire_due('2091-01-01 00:00+00'), 0, 'what applications claim does not fire by itself');
select timers.configure('tap quiet', 'outbox') \g /dev/null
select is(timers.fire_due('2091-01-01 00:00+00'), 1, 'with another delivery it does');
select is((select count(*) from timers.outbox), 4::bigint, 'and nothing came twice');

select * from finish();
rollback;

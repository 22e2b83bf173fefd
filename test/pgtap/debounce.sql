-- Intent: debounce moves a scheduled timer to the clock plus its quiet time, never past max_wait after it was first
-- scheduled.
begin;
select plan(47);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-b005-' || lpad(number::text, 12, '0'))::uuid $$;
-- Debounces and answers with the outcome and whether fire_at is what the clock during the call makes it: between the
-- two clocks around it plus quiet, or the bound exactly.
create function pg_temp.debounce(number integer, quiet interval, max_wait interval default null,
    payload jsonb default '{}')
returns text
language plpgsql as $$
declare
    earliest timestamptz := clock_timestamp();
    outcome text;
    latest timestamptz;
    t timers.timer;
    bound timestamptz;
begin
    outcome := timers.debounce(pg_temp.id(number), 'tap debounce', 'saga', quiet, payload, max_wait);
    latest := clock_timestamp();
    t := timers.lookup(pg_temp.id(number));
    bound := t.created_at + max_wait;
    if outcome in ('inserted', 'rearmed') and t.fire_at between earliest + quiet and latest + quiet then
        return outcome || ' quiet';
    elsif outcome = 'inserted' and t.fire_at between earliest + max_wait and bound then
        return outcome || ' bound';
    elsif t.fire_at = bound then
        return outcome || ' bound';
    end if;
    return outcome;
end
$$;

-- Quiet time.
select is(pg_temp.debounce(1, '1 hour', payload => '1'), 'inserted quiet', 'a new timer');
select results_eq(
    format('select status, attempts, process_manager collate "default", correlation_id collate "default", payload
    from timers.lookup(%L)', pg_temp.id(1)),
    $$ select 'scheduled'::timers.timer_status, 0, 'tap debounce', 'saga', jsonb '1' $$, 'like any other');
select is(pg_temp.debounce(1, '2 hours', payload => '2'), 'rearmed quiet', 'later');
select is((select payload from timers.lookup(pg_temp.id(1))), '2', 'with the new payload');
select is(pg_temp.debounce(1, '1 minute'), 'rearmed quiet', 'a shorter quiet time is earlier');
select is(pg_temp.debounce(1, '0'), 'rearmed quiet', 'none is at once');
select is(pg_temp.debounce(1, '1 day'), 'rearmed quiet', 'and later again');
select is((select count(*) from generate_series(1, 50) n
           where pg_temp.debounce(1, n * interval '1 minute') = 'rearmed quiet'),
    50::bigint, 'fifty times in a row');
select is((select created_at < now() + interval '1 minute' and updated_at > created_at
    from timers.lookup(pg_temp.id(1))), true,
    'it stays the timer that was first scheduled');
select is(timers.debounce(pg_temp.id(1), 'tap debounce elsewhere', 'another saga', '1 hour'), 'rearmed',
    'it may move elsewhere');
select results_eq(
    format('select process_manager collate "default", correlation_id collate "default", payload from timers.lookup(%L)',
        pg_temp.id(1)),
    $$ select 'tap debounce elsewhere', 'another saga', jsonb '{}' $$, 'as with schedule');
select is((select count(*) from timers.process_manager where process_manager like 'tap debounce%'), 2::bigint,
    'each process manager has its settings');

-- max_wait: from when the timer was first scheduled.
select is(pg_temp.debounce(2, '1 hour', '3 hours'), 'inserted quiet', 'a bound that is far away');
select is(pg_temp.debounce(2, '2 hours', '3 hours'), 'rearmed quiet', 'is none');
update timers.timer set created_at = created_at - interval '2 hours' where timer_id = pg_temp.id(2);
select is(pg_temp.debounce(2, '59 minutes', '3 hours'), 'rearmed quiet', 'two hours later there is an hour left');
select is(pg_temp.debounce(2, '61 minutes', '3 hours'), 'rearmed bound', 'and not a minute more');
select is(pg_temp.debounce(2, '61 minutes', '3 hours'), 'rearmed bound', 'however often');
select is(pg_temp.debounce(2, '10 minutes', '3 hours'), 'rearmed quiet', 'within it is moved as ever');
select is(pg_temp.debounce(2, '5 hours', '4 hours'), 'rearmed bound', 'each call brings its bound');
select is(pg_temp.debounce(2, '5 hours'), 'rearmed quiet', 'or none');
select is(pg_temp.debounce(2, '1 hour', '1 hour'), 'rearmed bound', 'a bound that has passed');
select ok((select fire_at < clock_timestamp() from timers.lookup(pg_temp.id(2))), 'makes it due at once');
select is(timers.fire_due(), 1, 'it fires');
select is(pg_temp.debounce(3, '2 hours', '1 hour'), 'inserted bound',
    'a new timer waits no longer than the bound, either');
select is(pg_temp.debounce(4, '1 hour', '1 hour'), 'inserted quiet', 'the bound and the quiet time may be the same');
select is(pg_temp.debounce(5, '1 month', '1 year'), 'inserted quiet', 'months and years');
select is(pg_temp.debounce(6, '0', '1 microsecond'), 'inserted quiet', 'or microseconds');
select is(pg_temp.debounce(7, '1 hour', '1 second'), 'inserted bound', 'a new one');
select is(timers.schedule(pg_temp.id(7), 'tap debounce', 'saga', '2090-01-01 00:00+00'), 'rearmed',
    'moved by another call');
select is(pg_temp.debounce(7, '1 hour', '30 minutes'), 'rearmed bound', 'is debounced from its first moment on');

-- A dead timer that is tried again is the timer that it was. (modes_and_states.sql goes through the states.)
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, died_at)
values (pg_temp.id(15), 'tap debounce', 'saga', '2090-01-01 00:00+00', 'dead', now());
select timers.retry_dead(pg_temp.id(15), '2090-01-01 00:00+00') \g /dev/null
select is(pg_temp.debounce(15, '1 hour'), 'rearmed quiet', 'a dead timer that is tried again is debounced again');
-- Undone with its transaction.
savepoint before;
select is(pg_temp.debounce(50, '1 hour'), 'inserted quiet', 'a new timer');
rollback to before;
select is(pg_temp.debounce(50, '1 hour'), 'inserted quiet', 'that is rolled back never was');

select throws_ok(format('select timers.debounce(%s)', arguments), state, null, arguments) from (values
    ('null, ''tap'', ''saga'', ''1 hour''', '22004'),
    ('gen_random_uuid(), null, ''saga'', ''1 hour''', '22004'),
    ('gen_random_uuid(), ''tap'', null, ''1 hour''', '22004'),
    ('gen_random_uuid(), ''tap'', ''saga'', null', '22004'),
    ('gen_random_uuid(), ''tap'', ''saga'', ''1 hour'', null', '22004'),
    ('gen_random_uuid(), '''', ''saga'', ''1 hour''', '22023'),
    ('gen_random_uuid(), ''tap'', '''', ''1 hour''', '22023'),
    ('gen_random_uuid(), ''tap'', ''saga'', ''-1 microsecond''', '22023'),
    ('gen_random_uuid(), ''tap'', ''saga'', ''1 hour'', ''{}'', ''0''', '22023'),
    ('gen_random_uuid(), ''tap'', ''saga'', ''1 hour'', ''{}'', ''-1 hour''', '22023'),
    ('gen_random_uuid(), ''tap'', ''saga'', ''1 day -25 hours''', '22023')) c (arguments, state);
select throws_like('select timers.debounce(gen_random_uuid(), ''tap'', ''saga'', ''-1 hour'')', '%"quiet"%',
    'quiet by name');
select throws_like('select timers.debounce(gen_random_uuid(), ''tap'', ''saga'', ''1 hour'', ''{}'', ''0'')',
    '%"max_wait"%',
    'max_wait, too');
select is((select count(*) from timers.timer where process_manager = 'tap'), 0::bigint,
    'what is refused leaves nothing');

select * from finish();
rollback;

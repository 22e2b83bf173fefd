-- Intent: a leased event is hidden from every other consumer until its lease ends or it is acknowledged, never lost.
begin;
select plan(52);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-b004-' || lpad(number::text, 12, '0'))::uuid $$;
select timers.schedule(pg_temp.id(n), 'tap lease ' || n % 2, 'event ' || n,
    timestamptz '2090-01-01 00:00+00' + n * interval '1 hour',
    to_jsonb(n))
from generate_series(1, 8) n \g /dev/null
-- One by one, so that positions are in the order of time over both.
select timers.fire_due(timestamptz '2090-01-01 00:00+00' + n * interval '1 hour')
from generate_series(1, 8) n \g /dev/null
create temporary table handed (place serial, how text, position bigint, event_id uuid, payload jsonb,
    leased_until timestamptz);
create function pg_temp.numbers(events text) returns text
language sql volatile as $$
    select coalesce(string_agg(h.payload #>> '{}', ' ' order by h.place), 'none') from handed h where h.how = events
$$;
create function pg_temp.lease(name text, most integer default 100, lease interval default '1 minute',
    lane text default null)
returns text
language plpgsql as $$
begin
    insert into handed (how, position, event_id, payload, leased_until)
    select name, e.position, e.event_id, e.payload, e.leased_until from timers.lease_events(most, lease, lane) e;
    return pg_temp.numbers(name);
end
$$;
create function pg_temp.take(most integer default 100, lane text default null) returns text
language sql volatile as $$
    select coalesce((select string_agg(e.payload #>> '{}', ' ' order by e.position)
        from timers.take_events(most, lane) e), 'none')
$$;
create function pg_temp.positions(events text) returns bigint[]
language sql stable as $$ select array_agg(h.position) from handed h where h.how = events $$;

select is(pg_temp.lease('a', 2), '1 2', 'the first two');
select is((select count(*) from timers.outbox), 8::bigint, 'stay in the outbox');
select results_eq(
    $$ select h.leased_until = o.leased_until, h.leased_until > clock_timestamp() + interval '59 seconds',
              h.leased_until <= clock_timestamp() + interval '1 minute', h.event_id = o.event_id
       from handed h join timers.outbox o using (position) $$,
    $$ select true, true, true, true from generate_series(1, 2) $$, 'leased for the time that was asked for');
create temporary table third as select e from timers.lease_events(1, '1 hour') e;
select results_eq('select (t.e).* from third t', $$ select o.* from timers.outbox o where o.payload = '3' $$,
    'the next one, as a whole row of timers.outbox');
select is(pg_temp.take(1), '4', 'who takes gets what is behind them');
select is(pg_temp.lease('b', 1, '1 hour', 'tap lease 0'), '6', 'of one process manager');
select is(pg_temp.lease('c', 5, '1 hour', 'tap lease 1'), '5 7', 'or of the other, as many as there are');
select is(pg_temp.lease('d', 100, lane => 'tap lease 2'), 'none', 'of a third there are none');
select is(pg_temp.take(100), '8', 'what is left is taken');
select is(pg_temp.lease('e'), 'none', 'all that is left is leased');
select is(pg_temp.take(), 'none', 'and not for others');
select is((select string_agg(o.payload #>> '{}', ' ' order by o.position) from timers.outbox o), '1 2 3 5 6 7',
    'it is there still');

-- Acknowledging.
select is(timers.ack_events(pg_temp.positions('a')), 2::bigint, 'who is done acknowledges');
select is((select string_agg(o.payload #>> '{}', ' ' order by o.position) from timers.outbox o), '3 5 6 7',
    'those are gone');
select is(timers.ack_events(pg_temp.positions('a')), 0::bigint, 'which is done once');
select is(timers.ack_events('{}'), 0::bigint, 'nothing to acknowledge');
select is(timers.ack_events(array[null, -1, 0, 9223372036854775807]), 0::bigint, 'or nothing that is there');
select is(timers.ack_events((select array_agg(h.position) from handed h
    where h.payload = '5') || pg_temp.positions('a')), 1::bigint,
    'it counts what there was');
savepoint before;
select is(timers.ack_events(pg_temp.positions('b')), 1::bigint, 'acknowledged');
rollback to before;
select is((select count(*) from timers.outbox o where o.position = any (pg_temp.positions('b'))), 1::bigint,
    'and rolled back is not acknowledged');
select is((select status from timers.lookup(pg_temp.id(1))), 'fired', 'the timer itself stays fired');

-- A lease that ends: to the consumer who comes next, in its old place.
update timers.outbox set leased_until = clock_timestamp() where payload = '3';
select is(pg_temp.lease('f', 1), '3', 'a lease that has ended is no lease');
select is(pg_temp.lease('g', 100), 'none', 'but the new one is');
update timers.outbox set leased_until = clock_timestamp() - interval '1 microsecond' where payload in ('3', '7');
select is(pg_temp.take(1), '3', 'for who takes, too');
select is(pg_temp.lease('h', 100, '1 microsecond'), '7', 'a lease may be short');
select is(pg_temp.lease('i', 100, '1 hour'), '7', 'and ends by the clock, not with the transaction');
select is((select count(distinct h.event_id) from handed h where h.payload = '7'), 1::bigint,
    'handed out again it is the same event');
select is(timers.ack_events(pg_temp.positions('h')), 1::bigint, 'whoever is done first acknowledges it');
select is(timers.ack_events(pg_temp.positions('i')), 0::bigint, 'the other finds it gone');
savepoint before;
select is(pg_temp.lease('j'), 'none', 'leased by another');
update timers.outbox set leased_until = null;
select is(pg_temp.lease('j'), '6', 'let go, it is leased');
rollback to before;
select is((select leased_until > clock_timestamp() + interval '59 minutes' from timers.outbox), true,
    'a lease that is rolled back never was');

-- The defaults.
update timers.outbox set leased_until = null;
insert into timers.outbox (event_id, timer_id, process_manager, correlation_id, fire_at, fired_at, attempts, payload)
select pg_temp.id(n), pg_temp.id(n), 'tap many', 'many', now(), now(), 1, to_jsonb(n)
from generate_series(1001, 1250) n;
select is((select count(*) from timers.lease_events()), 100::bigint, 'a hundred, unless one says how many');
select is((select count(*) from timers.outbox where leased_until between clock_timestamp() + interval '59 seconds'
    and clock_timestamp() + interval '1 minute'), 100::bigint, 'for a minute, unless one says for how long');
select is((select count(*) from timers.lease_events(process_manager => 'tap many', max_events => 2147483647,
    lease => '1 day')),
    151::bigint, 'by name');
select is(timers.ack_events((select array_agg(position) from timers.outbox)), 251::bigint, 'many at once');
select is((select count(*) from timers.outbox), 0::bigint, 'nothing is left');

select throws_ok(call, state, null, call) from (values
    ('select timers.lease_events(0)', '22023'), ('select timers.lease_events(-1)', '22023'),
    ('select timers.lease_events(null)', '22004'), ('select timers.lease_events(1, ''0'')', '22023'),
    ('select timers.lease_events(1, ''-1 second'')', '22023'), ('select timers.lease_events(1, null)', '22004'),
    ('select timers.lease_events(1, ''1 minute'', '''')', '22023'),
    ('select timers.lease_events(1, ''1 minute'', repeat(''x'', 256))', '22023'),
    ('select timers.ack_events(null)', '22004')) c (call, state);
select throws_like(call, format('%%"%s"%%', argument), call || ' names it') from (values
    ('select timers.lease_events(0)', 'max_events'), ('select timers.lease_events(null)', 'max_events'),
    ('select timers.lease_events(1, ''0'')', 'lease'), ('select timers.lease_events(1, null)', 'lease'),
    ('select timers.lease_events(1, ''1 minute'', '''')', 'process_manager'),
    ('select timers.ack_events(null)', 'positions')) c (call, argument);

select * from finish();
rollback;

-- Intent: every firing leaves one event whose id depends on the timer and its time alone, and consumers get each once.
begin;
select plan(29);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-a005-' || lpad(number::text, 12, '0'))::uuid $$;
create temporary table seen (attempt integer, timer_id uuid, event_id uuid);

-- The same firing, undone and repeated, has the same id; a pass that crashes before its commit is no different.
select timers.schedule(pg_temp.id(n), 'tap outbox', 'saga ' || n,
    timestamptz '2090-01-01 00:00+00' + n * interval '1 second', to_jsonb(n))
from generate_series(1, 3) n \g /dev/null
create function pg_temp.fire_and_undo() returns jsonb
language plpgsql as $$
declare
    events jsonb;
begin
    begin
        perform timers.fire_due('2091-01-01 00:00+00');
        select jsonb_object_agg(o.timer_id, o.event_id) into events from timers.outbox o;
        raise exception sqlstate 'TMUND';
    exception when sqlstate 'TMUND' then
        return events;
    end;
end
$$;
select is(pg_temp.fire_and_undo(), pg_temp.fire_and_undo(), 'fired twice over, the same event ids');
select is((select count(*) from jsonb_object_keys(pg_temp.fire_and_undo())), 3::bigint, 'of three timers');
select is((select count(distinct e.value) from jsonb_each(pg_temp.fire_and_undo()) e), 3::bigint, 'no two alike');
select is((select count(*) from timers.outbox), 0::bigint, 'undone is undone');
select pg_temp.fire_and_undo()::text as undone \gset
select is(timers.fire_due('2091-01-01 00:00+00'), 3, 'fired for good');
select is((select jsonb_object_agg(o.timer_id, o.event_id) from timers.outbox o), :'undone'::jsonb, 'with those ids');
select is((select jsonb_object_agg(t.timer_id, t.fired_event_id) from timers.timer t), :'undone'::jsonb,
    'which the timers keep');

-- Neither payload nor process manager nor correlation matter, the time does.
create function pg_temp.event_of(fire_at timestamptz, process_manager text, payload jsonb) returns uuid
language plpgsql as $$
declare
    event uuid;
begin
    begin
        perform timers.schedule(pg_temp.id(10), process_manager, payload::text, fire_at, payload);
        perform timers.fire_due('2095-01-01 00:00+00');
        select o.event_id into strict event from timers.outbox o where o.timer_id = pg_temp.id(10);
        raise exception sqlstate 'TMUND';
    exception when sqlstate 'TMUND' then
        return event;
    end;
end
$$;
select is(pg_temp.event_of('2092-01-01 00:00+00', 'tap outbox', '1'),
    pg_temp.event_of('2092-01-01 00:00+00', 'tap another', '2'),
    'the id does not depend on the content');
select isnt(pg_temp.event_of('2092-01-01 00:00+00', 'tap outbox', '1'),
    pg_temp.event_of('2092-01-01 00:00:00.000001+00', 'tap outbox', '1'),
    'a microsecond makes another');
select is(pg_temp.event_of('2092-01-01 00:00+00', 'tap outbox', '1'),
    pg_temp.event_of('2092-01-01 02:00+02', 'tap outbox', '1'),
    'the same instant is the same in every zone');
set local timezone = 'Pacific/Kiritimati';
set local datestyle = 'German';
select pg_temp.event_of('2092-01-01 00:00+00', 'tap outbox', '1') as elsewhere \gset
reset timezone;
reset datestyle;
select is(pg_temp.event_of('2092-01-01 00:00+00', 'tap outbox', '1'), :'elsewhere',
    'whatever the session''s zone and style');
select is(substr(:'elsewhere', 15, 1), '5', 'a UUID of version 5');

-- What an event carries.
select results_eq(
    $$ select o.process_manager collate "default", o.correlation_id collate "default", o.fire_at, o.attempts, o.payload
       from timers.outbox o order by o.position $$,
    $$ select 'tap outbox', 'saga ' || n, timestamptz '2090-01-01 00:00+00' + n * interval '1 second', 1, to_jsonb(n)
       from generate_series(1, 3) n $$, 'the timer''s own data, in order');
select is((select count(distinct o.fired_at) from timers.outbox o), 1::bigint, 'the clock of the pass');
select is((select bool_and(o.fired_at between transaction_timestamp() and clock_timestamp()) from timers.outbox o),
    true, 'which is now');

-- What failed before says so in its event.
select timers.configure('tap retried', 'external') \g /dev/null
select timers.schedule(pg_temp.id(20), 'tap retried', 'saga', '2010-01-01 00:00+00') \g /dev/null
select timers.release(c.timer_id, c.claim_token, '2010-01-01 00:00+00', 'busy') from timers.claim_due('tap retried') c
\g /dev/null
select timers.configure('tap retried', 'outbox') \g /dev/null
select is(timers.fire_due(), 1, 'a timer that was claimed before fires');
select is((select o.attempts from timers.outbox o where o.timer_id = pg_temp.id(20)), 2, 'in its second attempt');

-- Taking.
select is((select array_agg(right(e.timer_id::text, 2)) from timers.take_events(2) e), array['01', '02'],
    'the first two, in order');
select is((select count(*) from timers.outbox), 2::bigint, 'are gone');
select is((select array_agg(right(e.timer_id::text, 2)) from timers.take_events(10, 'tap retried') e), array['20'],
    'of one process manager');
select is((select array_agg(right(e.timer_id::text, 2)) from timers.take_events(10) e), array['03'], 'the rest');
select is((select count(*) from timers.take_events()), 0::bigint, 'and no more');
select is((select count(*) from timers.timer where status = 'fired'), 4::bigint, 'the timers stay fired');

-- In batches nothing is lost nor doubled.
select timers.schedule(pg_temp.id(100 + n), 'tap batch', 'saga',
    timestamptz '2090-01-01 00:00+00' + n * interval '1 second')
from generate_series(1, 250) n \g /dev/null
select is(timers.fire_due('2091-01-01 00:00+00', 1000), 250, 'a batch');
create temporary table taken (round integer, place integer, timer_id uuid, position bigint);
do $$
begin
    for r in 1 .. 8 loop
        insert into taken (round, place, timer_id, position)
        select r, row_number() over (), t.timer_id, t.position from timers.take_events(40, 'tap batch') t;
    end loop;
end
$$;
select is((select count(*) from taken), 250::bigint, 'taken in eight rounds');
select is((select count(distinct timer_id) from taken), 250::bigint, 'each once');
select results_eq('select round, count(*) from taken group by round order by round',
    $$ select r, case when r = 7 then 10 else 40 end::bigint from generate_series(1, 7) r $$,
        'as many as were asked for');
select is_empty(
    $$ select t.round, t.place from (
           select round, place, position, lag(position) over (order by round, place) as before from taken) t
       where t.position <= t.before $$, 'in the order of position');
select is((select count(*) from timers.outbox), 0::bigint, 'the outbox is empty');

select * from finish();
rollback;

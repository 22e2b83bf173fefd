-- Intent: postponing, cancelling, claiming and firing write no index: each is a heap-only update, and re-arming does
-- not let an index grow.
set timezone = 'UTC';

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-800a-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.updates() returns table (updates bigint, hot bigint)
language sql volatile as $$
    select pg_stat_get_xact_tuples_updated('timers.timer'::regclass),
           pg_stat_get_xact_tuples_hot_updated('timers.timer'::regclass)
$$;
select timers.configure('regress hot ext', 'external'), timers.configure('regress hot notify', 'notify', 'regress_hot');

-- No index and no predicate names what the hot transitions change.
select c.relname as index, a.attname as changes_often
from pg_index i
join pg_class c on c.oid = i.indexrelid
join pg_attribute a on a.attrelid = i.indrelid
where i.indrelid = 'timers.timer'::regclass
  and a.attname in ('status', 'fire_at', 'attempts', 'updated_at', 'fired_event_id', 'payload', 'last_error')
  and (a.attnum = any (i.indkey) or pg_get_indexdef(i.indexrelid) ~ ('\m' || a.attname || '\M'));

-- Each way of re-arming five timers that were due on 1 March 2090 and have been postponed to 1 April: by itself and on
-- an empty page, so that nothing but a changed index can make an update other than heap-only.
create temporary view five as
select pg_temp.id(n) as id, 'regress hot' as lane, 'saga' as saga from generate_series(1, 5) n;
create function pg_temp.requests(fire_at timestamptz) returns timers.timer_request[]
language sql as $$
    select array_agg((id, lane, saga, requests.fire_at, '{"turn": 9}')::timers.timer_request) from five
$$;
create function pg_temp.updates_by(statement text, out updates bigint, out heap_only bigint)
language plpgsql as $$
declare
    before record;
begin
    truncate timers.timer;
    perform timers.schedule(id, lane, saga, '2090-03-01 00:00+00') from five;
    perform timers.schedule(id, lane, saga, '2090-04-01 00:00+00') from five;
    -- A new one comes last: the session has to find out that the next is there.
    perform timers.schedule(pg_temp.id(6), 'regress hot', 'saga', '2090-03-01 00:00+00');
    select * into before from pg_temp.updates();
    execute statement;
    select u.updates - before.updates, u.hot - before.hot into updates, heap_only from pg_temp.updates() u;
end
$$;
create temporary table way (place integer generated always as identity, what text, statement text);
insert into way (what, statement) values
    ('postponed', $$ select timers.schedule(id, lane, saga, '2090-05-01 00:00+00', '{"turn": 9}') from five $$),
    ('later', $$ select timers.schedule(id, lane, saga, '2090-05-01 00:00+00', mode => 'later') from five $$),
    ('not later', $$ select timers.schedule(id, lane, saga, '2090-03-15 00:00+00', mode => 'later') from five $$),
    ('earlier', $$ select timers.schedule(id, lane, saga, '2090-03-15 00:00+00', mode => 'earlier') from five $$),
    ('not earlier', $$ select timers.schedule(id, lane, saga, '2090-05-01 00:00+00', mode => 'earlier') from five $$),
    ('kept', $$ select timers.schedule(id, lane, saga, '2090-05-01 00:00+00', mode => 'keep') from five $$),
    ('once', $$ select timers.schedule_once(id, lane, saga, '2090-05-01 00:00+00') from five $$),
    ('to the same time', $$ select timers.schedule(id, lane, saga, '2090-04-01 00:00+00', '{"turn": 9}') from five $$),
    ('back to the first time', $$ select timers.schedule(id, lane, saga, '2090-03-01 00:00+00') from five $$),
    ('by a delay', $$ select timers.schedule_in(id, lane, saga, '1000 years') from five $$),
    ('debounced', $$ select timers.debounce(id, lane, saga, '1000 years') from five $$),
    ('debounced to a bound', $$ select timers.debounce(id, lane, saga, '1000 years', '{}', '900 years') from five $$),
    ('twice', $$ select timers.schedule(id, lane, saga, '2090-05-01 00:00+00'),
                        timers.debounce(id, lane, saga, '1000 years') from five $$),
    -- Whether the session expects them to be new, to be there, or both: in this order.
    ('together', $$ select timers.schedule_many(pg_temp.requests('2090-05-01 00:00+00')) $$),
    ('together again', $$ select timers.schedule_many(pg_temp.requests('2090-05-01 00:00+00')) $$),
    ('together, later', $$ select timers.schedule_many(pg_temp.requests('2090-05-01 00:00+00'), 'later') $$),
    ('together, earlier', $$ select timers.schedule_many(pg_temp.requests('2090-03-15 00:00+00'), 'earlier') $$),
    ('together, kept', $$ select timers.schedule_many(pg_temp.requests('2090-05-01 00:00+00'), 'keep') $$),
    ('together, later still', $$ select timers.schedule_many(pg_temp.requests('2090-05-01 00:00+00'), 'later') $$),
    ('by hand', $$ update timers.timer set fire_at = '2090-05-01 00:00+00' where correlation_id = 'saga'
                   and timer_id <> pg_temp.id(6) $$),
    -- What changes the place, the lane or the correlation is written into an index, and this is how it looks.
    ('before the first time', $$ select timers.schedule(id, lane, saga, '2090-02-01 00:00+00') from five $$),
    ('into the past', $$ select timers.schedule(id, lane, saga, '2010-02-01 00:00+00') from five $$),
    ('into another lane', $$ select timers.schedule(id, 'regress hot 2', saga, '2090-05-01 00:00+00') from five $$),
    ('of another instance', $$ select timers.schedule(id, lane, 'saga 2', '2090-05-01 00:00+00') from five $$);
select w.what, u.updates, u.heap_only from way w cross join lateral pg_temp.updates_by(w.statement) u order by w.place;

-- The other transitions, each by itself as well.
begin;
truncate timers.timer;
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2090-01-01 00:00+00')) from generate_series(1, 5) n;
select updates as updates_before, hot as hot_before from pg_temp.updates() \gset
-- Cancelled.
select count(timers.cancel(pg_temp.id(n))) from generate_series(1, 3) n;
select timers.cancel_correlation('regress hot', 'saga');
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
rollback;

begin;
truncate timers.timer;
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2090-01-01 00:00+00')) from generate_series(1, 5) n;
select updates as updates_before, hot as hot_before from pg_temp.updates() \gset
-- Fired into the outbox.
select timers.fire_due('2090-01-01 00:00+00');
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
rollback;

begin;
truncate timers.timer;
select count(timers.schedule(pg_temp.id(n), 'regress hot ext', 'saga', '2090-01-01 00:00+00'))
from generate_series(1, 5) n;
select updates as updates_before, hot as hot_before from pg_temp.updates() \gset
-- Claimed, and completed.
select count(timers.mark_fired(c.timer_id, c.timer_id, c.claim_token))
from timers.claim_due('regress hot ext', 5, as_of => '2090-01-01 00:00+00') c;
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
rollback;

begin;
truncate timers.timer;
select count(timers.schedule(pg_temp.id(n), 'regress hot notify', 'saga', '2090-01-01 00:00+00'))
from generate_series(1, 5) n;
select updates as updates_before, hot as hot_before from pg_temp.updates() \gset
-- Sent, and acknowledged.
select timers.fire_due('2090-01-01 00:00+00');
select count(timers.mark_fired(c.timer_id, c.timer_id, c.token)) from timers.claim c;
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
rollback;

begin;
truncate timers.timer;
select count(timers.schedule(pg_temp.id(n), 'regress hot ext', 'saga', '2090-01-01 00:00+00'))
from generate_series(1, 5) n;
select count(timers.dead_letter(pg_temp.id(n), 'broken')) from generate_series(1, 5) n;
select updates as updates_before, hot as hot_before from pg_temp.updates() \gset
-- Resumed, and dead again.
select count(timers.park_resume(c.timer_id, c.claim_token))
from generate_series(1, 4) n cross join lateral timers.claim_dead(pg_temp.id(n)) c;
select count(timers.claim_dead(pg_temp.id(5)));
select timers.recover_expired_resumes('2090-01-01 00:00+00');
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
rollback;

-- An overdue timer that is postponed. To move it to another time in the past is to queue it anew.
begin;
truncate timers.timer;
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2010-01-01 00:00+00')) from generate_series(1, 5) n;
select updates as updates_before, hot as hot_before from pg_temp.updates() \gset
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2090-01-01 00:00+00')) from generate_series(1, 5) n;
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2011-01-01 00:00+00')) from generate_series(1, 5) n;
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
rollback;

-- Fifty rounds of re-arming 400 timers, each ten of them a transaction of its own, in an order that seldom meets a page
-- twice in a row and in every way by turns: the indexes stay as they are.
truncate timers.timer;
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga ' || n, '2090-01-01 00:00+00'))
from generate_series(1, 400) n;
create temporary table size_before as
select c.relname, pg_relation_size(c.oid) as bytes
from pg_index i join pg_class c on c.oid = i.indexrelid where i.indrelid = 'timers.timer'::regclass;
select pg_stat_force_next_flush();
create temporary table updates_before as
select pg_stat_get_tuples_updated('timers.timer'::regclass) as updates,
       pg_stat_get_tuples_hot_updated('timers.timer'::regclass) as hot;
create procedure pg_temp.rearm(round integer, start integer)
language plpgsql as $$
declare
    due timestamptz := timestamptz '2090-01-01 00:00+00' + round * interval '1 hour';
    numbers integer[] := array(select n * 37 % 400 + 1 from generate_series(start, start + 9) n);
begin
    case round % 6
        when 0 then perform timers.schedule(pg_temp.id(n), 'regress hot', 'saga ' || n, due) from unnest(numbers) n;
        when 1 then perform timers.schedule(pg_temp.id(n), 'regress hot', 'saga ' || n, due, mode => 'later')
            from unnest(numbers) n;
        when 2 then perform timers.debounce(pg_temp.id(n), 'regress hot', 'saga ' || n, '1000 years')
            from unnest(numbers) n;
        when 3 then perform timers.schedule(pg_temp.id(n), 'regress hot', 'saga ' || n, due, mode => 'earlier')
            from unnest(numbers) n;
        when 4 then perform timers.schedule_in(pg_temp.id(n), 'regress hot', 'saga ' || n, '1000 years')
            from unnest(numbers) n;
        else perform timers.schedule_many(array(
            select (pg_temp.id(n), 'regress hot', 'saga ' || n, due, '{}')::timers.timer_request
            from unnest(numbers) n));
    end case;
end
$$;
do $$
begin
    for round in 1 .. 50 loop
        for start in 0 .. 390 by 10 loop
            call pg_temp.rearm(round, start);
            commit;
        end loop;
    end loop;
end
$$;
select pg_stat_force_next_flush();
select relname, pg_relation_size(format('timers.%I', relname)::regclass) - bytes as grown_by
from size_before order by relname;
-- All but those that met a page which somebody's snapshot kept from being pruned.
select u.updates, u.hot > 0.99 * u.updates as heap_only
from updates_before b
cross join lateral (
    select pg_stat_get_tuples_updated('timers.timer'::regclass) - b.updates as updates,
           pg_stat_get_tuples_hot_updated('timers.timer'::regclass) - b.hot as hot) u;
select count(*), count(*) filter (where fire_at > '3000-01-01 00:00+00') as debounced from timers.timer;

delete from timers.timer;
delete from timers.process_manager;

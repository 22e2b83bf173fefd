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

-- Each transition by itself, on an empty page, so that nothing but a changed index can make it other than heap-only.
begin;
truncate timers.timer;
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2090-01-01 00:00+00')) from generate_series(1, 5) n;
select updates as updates_before, hot as hot_before from pg_temp.updates() \gset
-- Postponed.
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2090-02-01 00:00+00', '{"turn": 2}'))
from generate_series(1, 5) n;
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
-- Postponed again, and pulled back no further than it was first due.
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2090-03-01 00:00+00', mode => 'later'))
from generate_series(1, 5) n;
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2090-01-15 00:00+00', mode => 'earlier'))
from generate_series(1, 5) n;
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
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

-- An overdue timer that is moved, be it into the past.
begin;
truncate timers.timer;
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2010-01-01 00:00+00')) from generate_series(1, 5) n;
select updates as updates_before, hot as hot_before from pg_temp.updates() \gset
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2090-01-01 00:00+00')) from generate_series(1, 5) n;
select count(timers.schedule(pg_temp.id(n), 'regress hot', 'saga', '2011-01-01 00:00+00')) from generate_series(1, 5) n;
select updates - :updates_before as updates, hot - :hot_before as heap_only from pg_temp.updates();
rollback;

-- Fifty debounces of each of 400 timers, every one a transaction of its own, in an order that seldom meets a page twice
-- in a row: the indexes stay as they are.
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
do $$
begin
    for turn in 1 .. 50 loop
        for n in 0 .. 399 loop
            perform timers.schedule(pg_temp.id(n * 37 % 400 + 1), 'regress hot', 'saga ' || n * 37 % 400 + 1,
                                    timestamptz '2090-01-01 00:00+00' + turn * interval '1 hour');
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
select count(*), min(fire_at) = max(fire_at) as same from timers.timer;

delete from timers.timer;
delete from timers.process_manager;

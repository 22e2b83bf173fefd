-- Intent: consumers take events in order, once, inside their own transaction, of one process manager or of all.
set timezone = 'UTC';
set datestyle = 'ISO';

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-8006-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.number(id uuid) returns integer
language sql immutable as $$ select right(id::text, 12)::integer $$;

-- Timers of two process managers, fired in this transaction, so that the order is known.
begin;
select timers.schedule(pg_temp.id(n), 'regress ' || case when n % 2 = 0 then 'even' else 'odd' end, 'saga ' || n,
                       timestamptz '2090-01-01 00:00+00' + n * interval '1 day', to_jsonb(n))
from generate_series(1, 9) n;
select timers.fire_due(timestamptz '2090-01-01 00:00+00' + n * interval '1 day') from generate_series(1, 9) n;
commit;

-- All that is known of a firing, in the order of position.
select pg_temp.number(timer_id), process_manager, correlation_id, fire_at, attempts, payload,
       event_id = (select t.fired_event_id from timers.lookup(e.timer_id) t) as same_id
from timers.take_events(3) e;

-- Of one process manager.
select pg_temp.number(timer_id), process_manager from timers.take_events(2, 'regress odd');
select count(*) from timers.take_events(10, 'regress none');

-- Taken in the consumer's transaction: given back with it.
begin;
select pg_temp.number(timer_id) from timers.take_events(2);
savepoint a;
select pg_temp.number(timer_id) from timers.take_events(1);
rollback to a;
select pg_temp.number(timer_id) from timers.take_events(1);
rollback;

-- By default a hundred of all.
select pg_temp.number(timer_id) from timers.take_events();
select count(*) from timers.take_events();
select count(*) from timers.outbox;

-- Exactly once with effects in this database.
begin;
select timers.schedule(pg_temp.id(20), 'regress odd', 'saga', '2090-01-01 00:00+00', '{"amount": 7}');
select timers.fire_due('2090-01-01 00:00+00');
create temporary table effect (event_id uuid primary key, amount integer);
insert into effect (event_id, amount) select e.event_id, (e.payload->>'amount')::integer from timers.take_events() e;
insert into effect (event_id, amount) select e.event_id, (e.payload->>'amount')::integer from timers.take_events() e;
select amount from effect;
rollback;

-- What is taken stays in the timer's row: fired.
select status, count(*) from timers.timer group by status;

delete from timers.timer;
delete from timers.process_manager;

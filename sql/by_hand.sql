-- Intent: who writes into the tables directly, by INSERT, UPDATE, COPY or under replication, gets the same checks and
-- the same waking as through the functions.
set timezone = 'UTC';
set datestyle = 'ISO';

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-8007-' || lpad(number::text, 12, '0'))::uuid $$;
select timers.configure('regress hand', 'external');

-- wake_at is the engine's: what is due later, at that time; what is overdue, behind what is due already.
begin;
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at) values
    (pg_temp.id(1), 'regress hand', 'saga', '2090-01-01 00:00+00'),
    (pg_temp.id(2), 'regress hand', 'saga', '2001-01-01 00:00+00');
select fire_at,
       case when wake_at = fire_at then 'at fire_at' when wake_at >= now() then 'now' else 'BEHIND' end as wakes,
       payload, status, attempts from timers.timer order by timer_id;
-- Postponing leaves it, pulling earlier moves it, nobody else can set it.
update timers.timer set fire_at = '2091-01-01 00:00+00' where timer_id = pg_temp.id(1);
select fire_at, wake_at from timers.lookup(pg_temp.id(1));
update timers.timer set fire_at = '2089-01-01 00:00+00' where timer_id = pg_temp.id(1);
select fire_at, wake_at from timers.lookup(pg_temp.id(1));
update timers.timer set wake_at = '2001-01-01 00:00+00' where timer_id = pg_temp.id(1);
select fire_at, wake_at from timers.lookup(pg_temp.id(1));
update timers.timer set wake_at = '2095-01-01 00:00+00' where timer_id = pg_temp.id(1);
select fire_at, wake_at from timers.lookup(pg_temp.id(1));
-- Scheduled again by hand it queues behind what is due.
update timers.timer set status = 'cancelled' where timer_id = pg_temp.id(2);
update timers.timer set status = 'scheduled' where timer_id = pg_temp.id(2);
select status, fire_at < now() as overdue, wake_at > now() as queued from timers.lookup(pg_temp.id(2));
rollback;

-- Who is dead by hand has died now, and is found among the dead.
begin;
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status)
values (pg_temp.id(7), 'regress hand', 'saga', '2001-01-01 00:00+00', 'dead');
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, died_at)
values (pg_temp.id(8), 'regress hand', 'saga', '2001-01-01 00:00+00', 'dead', '2002-01-01 00:00+00');
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (pg_temp.id(9), 'regress hand', 'saga', '2090-01-01 00:00+00');
update timers.timer set status = 'dead' where timer_id = pg_temp.id(9);
select timer_id, died_at >= now() as now from timers.find_dead('regress hand');
select dead from timers.overview where process_manager = 'regress hand';
rollback;

-- What is written by hand fires.
begin;
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at) values
    (pg_temp.id(3), 'regress hand 2', 'saga', '2090-01-01 00:00+00');
select timers.fire_due('2090-01-01 00:00+00');
select timer_id, correlation_id from timers.outbox;
rollback;

-- The checks, with the column's name.
\set VERBOSITY terse
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (pg_temp.id(4), '', 'saga', '2090-01-01');
\echo :SQLSTATE
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (pg_temp.id(4), repeat('n', 256), 'saga', '2090-01-01');
\echo :SQLSTATE
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (pg_temp.id(4), 'regress hand', '', '2090-01-01');
\echo :SQLSTATE
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (pg_temp.id(4), 'regress hand', 'saga', 'infinity');
\echo :SQLSTATE
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (pg_temp.id(4), 'regress hand', 'saga', null);
\echo :SQLSTATE
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (null, 'regress hand', 'saga', '2090-01-01');
\echo :SQLSTATE
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (pg_temp.id(4), null, 'saga', '2090-01-01');
\echo :SQLSTATE
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (pg_temp.id(4), 'regress hand', 'saga', '2090-01-01');
update timers.timer set fire_at = '-infinity' where timer_id = pg_temp.id(4);
\echo :SQLSTATE
update timers.timer set process_manager = '' where timer_id = pg_temp.id(4);
\echo :SQLSTATE
update timers.timer set fire_at = null where timer_id = pg_temp.id(4);
\echo :SQLSTATE
select status, fire_at::date, process_manager from timers.lookup(pg_temp.id(4));

-- COPY, and what a subscription applies, go the same way.
copy timers.timer (timer_id, process_manager, correlation_id, fire_at, payload) from stdin;
00000000-0000-4000-8007-000000000005	regress hand	saga	2090-01-01 00:00+00	{"by": "copy"}
\.
select fire_at = wake_at as wakes, payload from timers.lookup(pg_temp.id(5));
begin;
set local session_replication_role = replica;
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at) values
    (pg_temp.id(6), 'regress hand', 'saga', '2001-01-01 00:00+00');
select wake_at >= now() as queued from timers.lookup(pg_temp.id(6));
rollback;

-- Deleting is allowed, and the id is free.
delete from timers.timer where timer_id = pg_temp.id(5);
select timers.schedule(pg_temp.id(5), 'regress hand', 'saga', '2090-01-01 00:00+00');

-- A claim of an unknown kind is refused.
insert into timers.claim (timer_id, token, kind, attempt, lease_until, claimed_by)
values (pg_temp.id(5), pg_temp.id(5), 'other', 1, '2090-01-01 00:00+00', 'me');
\echo :SQLSTATE

delete from timers.timer;
delete from timers.process_manager;

-- Intent: settings are set one by one, stay when left out, are refused when they make no sense, and hold for what fires
-- afterwards.
set timezone = 'UTC';
set intervalstyle = postgres;
\set VERBOSITY terse

create function pg_temp.settings() returns table (
    name text, delivery timers.delivery, channel text, max_attempts integer, lease interval, paused boolean)
language sql stable as $$
    select p.process_manager, p.delivery, p.channel, p.max_attempts, p.lease, p.paused
    from timers.process_manager p where p.process_manager like 'regress%' order by 1
$$;

-- A process manager that has no timer yet may be set up; what is not said are the defaults.
select timers.configure('regress one');
select * from pg_temp.settings();

-- One by one; null leaves as is.
select timers.configure('regress one', channel => 'bell');
select timers.configure('regress one', max_attempts => 3);
select timers.configure('regress one', lease => '90 seconds');
select timers.configure('regress one', 'notify');
select * from pg_temp.settings();
select timers.configure('regress one', null, null, null, null, null, null);
select * from pg_temp.settings();
select timers.configure('regress one', 'external', 'other', max_attempts => 0, lease => '1 month');
select * from pg_temp.settings();

-- notify needs an address: from this call or from before.
select timers.configure('regress two', 'notify', 'there');
select timers.configure('regress three', 'notify');
\echo :SQLSTATE
select timers.configure('regress two', channel => '');
\echo :SQLSTATE
select timers.configure('regress two', channel => repeat('c', 63));
select length(channel) from pg_temp.settings() where name = 'regress two';
select * from pg_temp.settings() where name <> 'regress two';

-- The table refuses by itself what would break the engine.
update timers.process_manager set max_attempts = -1 where process_manager = 'regress one';
update timers.process_manager set lease = '0' where process_manager = 'regress one';
update timers.process_manager set lease = '-1 second' where process_manager = 'regress one';
update timers.process_manager set channel = null where process_manager = 'regress two';
update timers.process_manager set channel = repeat('c', 64) where process_manager = 'regress two';
insert into timers.process_manager (process_manager) values ('');
insert into timers.process_manager (process_manager) values (repeat('n', 256));

-- Pausing answers whether it made a difference.
select timers.pause('regress one'), timers.pause('regress one');
select paused from pg_temp.settings() where name = 'regress one';
select timers.unpause('regress one'), timers.unpause('regress one');
select paused from pg_temp.settings() where name = 'regress one';
-- Also for a process manager that nobody has heard of.
select timers.unpause('regress four'), timers.pause('regress five');
select name, paused from pg_temp.settings() where name in ('regress four', 'regress five');
-- Pausing leaves the other settings alone.
select timers.configure('regress five', lease => '2 minutes', max_attempts => 7);
select * from pg_temp.settings() where name = 'regress five';

-- Settings take part in the transaction.
begin;
select timers.configure('regress six', 'external');
select timers.pause('regress one');
rollback;
select name, paused from pg_temp.settings() where name in ('regress one', 'regress six');

-- Settings of the server: what a process manager leaves open.
select name, setting, unit, vartype, context, min_val from pg_settings
where name in ('durable_timers.lease', 'durable_timers.batch_size') order by name;
set durable_timers.lease = '1 hour';
set durable_timers.anything = 'else';

delete from timers.process_manager;

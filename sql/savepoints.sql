-- Intent: scheduling is part of the caller's transaction: what is rolled back, all or to a savepoint, has never been.
set timezone = 'UTC';
set datestyle = 'ISO';

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-8001-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.mine() returns table (number integer, fire_at date, status timers.timer_status)
language sql stable as $$
    select right(t.timer_id::text, 12)::integer, t.fire_at::date, t.status from timers.timer t order by 1
$$;

-- Rollback leaves nothing: no timer, no settings, no event.
begin;
select timers.schedule(pg_temp.id(1), 'regress savepoints', 'saga', '2090-01-01 00:00+00');
select timers.fire_due('2091-01-01 00:00+00');
select count(*) from timers.outbox;
rollback;
select (select count(*) from timers.timer) as timers, (select count(*) from timers.outbox) as events,
       (select count(*) from timers.claim) as claims;

select timers.configure('regress savepoints', 'external');

-- A savepoint takes back what came after it, and only that.
begin;
select timers.schedule(pg_temp.id(1), 'regress savepoints', 'saga', '2090-01-01 00:00+00');
savepoint a;
select timers.schedule(pg_temp.id(1), 'regress savepoints', 'saga', '2090-02-01 00:00+00');
select timers.schedule(pg_temp.id(2), 'regress savepoints', 'saga', '2090-02-01 00:00+00');
savepoint b;
select timers.cancel(pg_temp.id(1));
select * from pg_temp.mine();
rollback to b;
select * from pg_temp.mine();
rollback to a;
select * from pg_temp.mine();
select timers.schedule(pg_temp.id(3), 'regress savepoints', 'saga', '2090-03-01 00:00+00');
release a;
commit;
select * from pg_temp.mine();

-- The id that a savepoint gave back is free.
begin;
savepoint a;
select timers.schedule(pg_temp.id(4), 'regress savepoints', 'saga', '2090-01-01 00:00+00');
rollback to a;
select timers.schedule(pg_temp.id(4), 'regress savepoints', 'saga', '2090-04-01 00:00+00');
commit;
select * from pg_temp.mine();

-- An error that a block of PL/pgSQL handles takes back the block's timers.
do $$
begin
    perform timers.schedule(pg_temp.id(5), 'regress savepoints', 'saga', '2090-05-01 00:00+00');
    begin
        perform timers.schedule(pg_temp.id(6), 'regress savepoints', 'saga', '2090-06-01 00:00+00');
        perform timers.schedule(pg_temp.id(5), 'regress savepoints', 'saga', 'infinity');
    exception when invalid_parameter_value then
        perform timers.schedule(pg_temp.id(7), 'regress savepoints', 'saga', '2090-07-01 00:00+00');
    end;
end
$$;
select * from pg_temp.mine();

-- A pass inside a savepoint is taken back with it, and can be run again.
begin;
savepoint a;
select timer_id = pg_temp.id(1) as first from timers.claim_due('regress savepoints', as_of => '2091-01-01 00:00+00');
rollback to a;
select count(*) from timers.claim;
select count(*) from timers.claim_due('regress savepoints', 10, as_of => '2091-01-01 00:00+00');
rollback;
select * from pg_temp.mine();

-- The row of a process manager follows its timer, however the transaction came to it.
begin;
select timers.schedule(pg_temp.id(8), 'regress new', 'saga', '2090-01-01 00:00+00');
savepoint a;
rollback to a;
select timers.schedule(pg_temp.id(9), 'regress new', 'saga', '2090-01-01 00:00+00');
rollback;
begin;
select timers.schedule(pg_temp.id(8), 'regress new', 'saga', '2090-01-01 00:00+00');
select count(*) as has_row from timers.process_manager where process_manager = 'regress new';
rollback;
begin;
savepoint a;
select timers.schedule(pg_temp.id(8), 'regress new', 'saga', '2090-01-01 00:00+00');
rollback to a;
select timers.schedule(pg_temp.id(8), 'regress new', 'saga', '2090-01-01 00:00+00');
select count(*) as has_row from timers.process_manager where process_manager = 'regress new';
rollback;

delete from timers.timer;
delete from timers.process_manager;

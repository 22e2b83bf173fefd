-- Intent: nothing is anybody's until it is granted, EXECUTE on a function is all that a role needs to call it, and it
-- gives no sight of the tables.
set timezone = 'UTC';

-- Nothing to PUBLIC: schema, tables, sequences, columns, functions, types.
select 'schema' as kind, nspname::text as name from pg_namespace
where nspname = 'timers' and exists (select from aclexplode(nspacl) a where a.grantee = 0)
union all
select 'relation', oid::regclass::text from pg_class
where relnamespace = 'timers'::regnamespace and exists (select from aclexplode(relacl) a where a.grantee = 0)
union all
select 'column', format('%s.%s', attrelid::regclass, attname) from pg_attribute join pg_class c on c.oid = attrelid
where c.relnamespace = 'timers'::regnamespace and exists (select from aclexplode(attacl) a where a.grantee = 0)
union all
select 'function', oid::regprocedure::text from pg_proc
where pronamespace = 'timers'::regnamespace
  and exists (select from aclexplode(coalesce(proacl, acldefault('f', proowner))) a where a.grantee = 0)
union all
select 'type', t.oid::regtype::text from pg_type t left join pg_class c on c.oid = t.typrelid
where t.typnamespace = 'timers'::regnamespace and t.typelem = 0 and (t.typtype = 'e' or c.relkind = 'c')
  and exists (select from aclexplode(coalesce(t.typacl, acldefault('T', t.typowner))) a where a.grantee = 0)
order by 1, 2;

-- The extension makes no role.
select rolname from pg_roles where rolname ~ 'timer' and rolname not like 'regress%';

-- SECURITY DEFINER pins its search_path, with the temporary schema last.
select p.oid::regprocedure as unpinned from pg_proc p
where p.pronamespace = 'timers'::regnamespace and p.prosecdef
  and not coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'];

create role regress_nobody;
create role regress_scheduler;
create role regress_worker;
create role regress_consumer;
grant usage on schema timers to regress_scheduler, regress_worker, regress_consumer;
grant execute on function timers.schedule(uuid, text, text, timestamptz, jsonb, timers.rearm_mode) to regress_scheduler;
grant execute on function
    timers.claim_due(text, integer, interval, timestamptz), timers.renew(uuid, uuid, interval),
    timers.mark_fired(uuid, uuid, uuid), timers.release(uuid, uuid, timestamptz, text) to regress_worker;
grant execute on function timers.take_events(integer, text) to regress_consumer;
select timers.configure('regress privileges', 'external');

\set VERBOSITY terse
-- Without a grant: nothing.
set role regress_nobody;
select timers.schedule('00000000-0000-4000-8008-000000000001', 'regress privileges', 'saga', '2090-01-01 00:00+00');
select * from timers.timer;
reset role;

-- With EXECUTE alone: scheduling, re-arming and making a new process manager's row, and no look at anything.
set role regress_scheduler;
select timers.schedule('00000000-0000-4000-8008-000000000001', 'regress privileges', 'saga', '2010-01-01 00:00+00');
select timers.schedule('00000000-0000-4000-8008-000000000001', 'regress privileges', 'saga', '2010-01-02 00:00+00');
begin;
select timers.schedule('00000000-0000-4000-8008-000000000002', 'regress new', 'saga', '2090-01-01 00:00+00');
rollback;
select count(*) from timers.timer;
select count(*) from timers.claim;
select count(*) from timers.outbox;
select count(*) from timers.process_manager;
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
values (gen_random_uuid(), 'x', 'y', now());
update timers.timer set payload = '{}';
delete from timers.timer;
select nextval('timers.outbox_position_seq');
select timers.cancel('00000000-0000-4000-8008-000000000001');
select * from timers.lookup('00000000-0000-4000-8008-000000000001');
select timers.fire_due();
select count(*) from timers.claim_due('regress privileges');
select timers.configure('regress privileges', 'outbox');
select count(*) from timers.take_events();
-- Who it is has not changed.
select current_user;
reset role;

-- A worker claims, renews, releases and completes.
set role regress_worker;
select timer_id, claim_token from timers.claim_due('regress privileges') \gset
select timers.renew(:'timer_id', :'claim_token', '1 minute') > now() as renewed;
select timers.release(:'timer_id', :'claim_token');
select timer_id, claim_token from timers.claim_due('regress privileges') \gset
select timers.mark_fired(:'timer_id', 'aaaaaaaa-0000-4000-8008-000000000001', :'claim_token');
select count(*) from timers.claim;
select timers.schedule('00000000-0000-4000-8008-000000000003', 'regress privileges', 'saga', '2090-01-01 00:00+00');
reset role;
select status, attempts from timers.lookup('00000000-0000-4000-8008-000000000001');

-- A consumer takes events, and reads no table.
begin;
select timers.schedule('00000000-0000-4000-8008-000000000004', 'regress outbox', 'saga', '2090-01-01 00:00+00');
select timers.fire_due('2090-01-01 00:00+00');
set local role regress_consumer;
select count(*) from timers.take_events();
select count(*) from timers.outbox;
rollback;

-- Row security of the caller's session neither hides timers from the functions nor opens them.
begin;
set local row_security = off;
set local role regress_scheduler;
select timers.schedule('00000000-0000-4000-8008-000000000005', 'regress privileges', 'saga', '2090-01-01 00:00+00');
rollback;

-- An error inside leaves the caller with his own rights.
set role regress_scheduler;
begin;
savepoint a;
select timers.schedule('00000000-0000-4000-8008-000000000006', 'regress privileges', 'saga', 'infinity');
rollback to a;
select current_user;
select count(*) from timers.timer;
rollback;
reset role;

delete from timers.timer;
delete from timers.process_manager;
drop owned by regress_scheduler, regress_worker, regress_consumer, regress_nobody;
drop role regress_scheduler, regress_worker, regress_consumer, regress_nobody;

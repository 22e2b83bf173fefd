-- Intent: whatever is added to the schema later keeps the rules: explained, nobody's until granted, out of reach of the
-- caller's search_path, and part of the extension. Driven by the catalog, so that new objects need no new test.
begin;
select plan(20);

create temporary view function_of_ours as
select p.oid::regprocedure::text as name, p.*
from pg_catalog.pg_proc p where p.pronamespace = 'timers'::regnamespace;

select cmp_ok((select count(*) from function_of_ours), '>=', 20::bigint, 'the functions are seen');

-- Explained.
select is_empty(
    $$ select name from function_of_ours where coalesce(pg_catalog.obj_description(oid, 'pg_proc'), '') = '' $$,
    'every function has a comment');
select is_empty(
    $$ select name from function_of_ours where pg_catalog.obj_description(oid, 'pg_proc') !~ '\.$' $$,
    'every comment is made of sentences');
select is_empty(
    $$ select p.name from function_of_ours p
       where p.proname not like '\_%' and p.proargnames is null and p.pronargs > 0 $$,
    'every public function names its arguments');

-- Nobody's.
select is_empty(
    $$ select p.name from function_of_ours p
       cross join pg_catalog.aclexplode(coalesce(p.proacl, pg_catalog.acldefault('f', p.proowner))) a
       where a.grantee = 0 $$,
    'no function may be executed by PUBLIC');
select is_empty(
    $$ select c.oid::regclass from pg_catalog.pg_class c
       cross join pg_catalog.aclexplode(coalesce(
           c.relacl, pg_catalog.acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner))) a
       where c.relnamespace = 'timers'::regnamespace and c.relkind in ('r', 'v', 'm', 'p', 'S') and a.grantee = 0 $$,
    'no relation may be touched by PUBLIC');
select is_empty(
    $$ select t.oid::regtype from pg_catalog.pg_type t
       left join pg_catalog.pg_class c on c.oid = t.typrelid
       cross join pg_catalog.aclexplode(coalesce(t.typacl, pg_catalog.acldefault('T', t.typowner))) a
       where t.typnamespace = 'timers'::regnamespace and t.typelem = 0 and (t.typtype in ('e', 'd') or c.relkind = 'c')
         and a.grantee = 0 $$,
    'no type may be used by PUBLIC');
select is_empty(
    $$ select a.privilege_type from pg_catalog.pg_namespace n cross join pg_catalog.aclexplode(n.nspacl) a
       where n.nspname = 'timers' and a.grantee = 0 $$,
    'the schema is closed to PUBLIC');

-- Out of reach.
select is_empty(
    $$ select name from function_of_ours
       where prosecdef and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'] $$,
    'every SECURITY DEFINER function pins its search_path');
select is_empty(
    $$ select p.name from function_of_ours p join pg_catalog.pg_language l on l.oid = p.prolang
       where l.lanname not in ('c', 'sql') $$,
    'no function is in a language that looks up names when it runs');
select is_empty(
    $$ select p.name from function_of_ours p join pg_catalog.pg_language l on l.oid = p.prolang
       where l.lanname = 'sql' and p.prosqlbody is null $$,
    'every SQL function was parsed when it was created');
select is_empty(
    $$ select p.name, d.refobjid::regprocedure from function_of_ours p
       join pg_catalog.pg_depend d on d.classid = 'pg_catalog.pg_proc'::regclass and d.objid = p.oid
       join pg_catalog.pg_proc r on d.refclassid = 'pg_catalog.pg_proc'::regclass and r.oid = d.refobjid
       where r.pronamespace not in ('timers'::regnamespace, 'pg_catalog'::regnamespace) $$,
    'no function rests on one of another schema');

select is_empty(
    $$ select name, proconfig from function_of_ours
       where exists (select from unnest(proconfig) s (setting) where s.setting <> 'search_path=pg_catalog, pg_temp') $$,
    'no function has another setting, nor another path');
select is_empty(
    $$ select name from function_of_ours p join pg_catalog.pg_language l on l.oid = p.prolang
       where l.lanname = 'sql' and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'] $$,
    'every SQL function has that path');
select is_empty(
    $$ select pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid),
              pg_catalog.pg_describe_object(d.refclassid, d.refobjid, d.refobjsubid)
       from pg_catalog.pg_depend m
       join pg_catalog.pg_extension e on m.refclassid = 'pg_catalog.pg_extension'::regclass and e.oid = m.refobjid
       join pg_catalog.pg_depend d on d.classid = m.classid and d.objid = m.objid
       cross join lateral pg_catalog.pg_identify_object(d.refclassid, d.refobjid, 0) r
       where e.extname = 'durable_timers' and m.deptype = 'e'
         and (r.schema not in ('timers', 'pg_catalog')
              or r.type in ('schema', 'language') and r.identity not in ('timers', 'c', 'sql', 'pg_catalog')) $$,
    'nothing of ours rests on anything of another schema');

-- Sound.
select is_empty(
    $$ select name from function_of_ours
       where provolatile <> 'v' and proname in (
           'schedule', 'schedule_in', 'schedule_once', 'schedule_many', 'debounce', 'cancel', 'cancel_correlation',
           'claim_due', 'renew', 'mark_fired', 'release', 'fire_due', 'requeue', 'requeue_stuck', 'dead_letter',
           'retry_dead', 'purge', 'claim_dead', 'renew_resume', 'complete_resume', 'park_resume', 'cancel_resume',
           'recover_expired_resumes', 'configure', 'pause', 'unpause', 'take_events', 'lease_events', 'ack_events',
               'arm') $$,
    'what writes is volatile');
select is_empty(
    $$ select name from function_of_ours where provolatile = 'v' and proparallel = 's' $$,
    'what is volatile does not run in parallel workers');
select is_empty(
    $$ select t.tgname, t.tgrelid::regclass from pg_catalog.pg_trigger t
       join pg_catalog.pg_class c on c.oid = t.tgrelid
       where c.relnamespace = 'timers'::regnamespace and not t.tgisinternal and t.tgenabled <> 'A' $$,
    'every trigger fires for replicated rows, too');
select is_empty(
    $$ select c.oid::regclass from pg_catalog.pg_class c
       where c.relnamespace = 'timers'::regnamespace and c.relkind in ('r', 'S') and c.relpersistence <> 'p' $$,
    'no table is lost in a crash');

-- Ours: with the extension it comes and goes.
select is_empty(
    $$ select o.object from (
           select 'pg_catalog.pg_proc'::regclass as class, oid, name as object from function_of_ours
           union all
           select 'pg_catalog.pg_class'::regclass, c.oid, c.oid::regclass::text from pg_catalog.pg_class c
           where c.relnamespace = 'timers'::regnamespace and c.relkind in ('r', 'v', 'm', 'p')
           union all
           select 'pg_catalog.pg_type'::regclass, t.oid, t.oid::regtype::text from pg_catalog.pg_type t
           where t.typnamespace = 'timers'::regnamespace and t.typtype in ('e', 'd')) o
       where not exists (
           select from pg_catalog.pg_depend d
           join pg_catalog.pg_extension e on d.refclassid = 'pg_catalog.pg_extension'::regclass and e.oid = d.refobjid
           where d.classid = o.class and d.objid = o.oid and d.deptype = 'e' and e.extname = 'durable_timers') $$,
    'everything is a member of the extension');

select * from finish();
rollback;

-- Intent: whoever looks into the schema with psql finds every object that is for users explained.
set search_path = pg_catalog, pg_temp;

select p.oid::regprocedure as function_without_comment
from pg_proc p
where p.pronamespace = 'timers'::regnamespace and coalesce(obj_description(p.oid, 'pg_proc'), '') = ''
order by p.proname;

select c.oid::regclass as relation_without_comment
from pg_class c
where c.relnamespace = 'timers'::regnamespace and c.relkind in ('r', 'v')
  and coalesce(obj_description(c.oid, 'pg_class'), '') = ''
order by c.relname;

select t.oid::regtype as type_without_comment
from pg_type t left join pg_class c on c.oid = t.typrelid
where t.typnamespace = 'timers'::regnamespace and (t.typtype in ('e', 'd') or c.relkind = 'c')
  and coalesce(obj_description(t.oid, 'pg_type'), '') = ''
order by t.typname;

-- Of the timer table, the settings and the views every column is explained.
select format('%s.%s', a.attrelid::regclass, a.attname) as column_without_comment
from pg_attribute a
where (a.attrelid in ('timers.timer'::regclass, 'timers.process_manager'::regclass)
       or a.attrelid in (select c.oid from pg_class c where c.relnamespace = 'timers'::regnamespace and c.relkind = 'v'))
  and a.attnum > 0
  and not a.attisdropped and coalesce(col_description(a.attrelid, a.attnum), '') = ''
order by a.attrelid::regclass::text, a.attnum;

select obj_description(n.oid, 'pg_namespace') is not null as schema_has_comment
from pg_namespace n where n.nspname = 'timers';

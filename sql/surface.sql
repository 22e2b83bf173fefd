-- Intent: the SQL surface is the published contract, name by name and argument by argument; whatever else there is for
-- users is an addition that somebody has to put down here.
set search_path = pg_catalog, pg_temp;
set intervalstyle = postgres;
\pset null '(null)'

-- The contract. The functions that a release does not have yet are only checked once they are there.
create temporary table contract (name text, arguments text, result text, there boolean);
insert into contract (name, arguments, result, there) values
    ('schedule',
     'timer_id uuid, process_manager text, correlation_id text, fire_at timestamp with time zone, '
     'payload jsonb DEFAULT ''{}''::jsonb, mode timers.rearm_mode DEFAULT ''replace''::timers.rearm_mode',
     'timers.schedule_outcome', true),
    ('schedule_in',
     'timer_id uuid, process_manager text, correlation_id text, delay interval, '
     'payload jsonb DEFAULT ''{}''::jsonb, mode timers.rearm_mode DEFAULT ''replace''::timers.rearm_mode',
     'timers.schedule_outcome', true),
    ('schedule_once',
     'timer_id uuid, process_manager text, correlation_id text, fire_at timestamp with time zone, '
     'payload jsonb DEFAULT ''{}''::jsonb',
     'boolean', true),
    ('schedule_many',
     'requests timers.timer_request[], mode timers.rearm_mode DEFAULT ''replace''::timers.rearm_mode',
     'TABLE(timer_id uuid, outcome timers.schedule_outcome)', false),
    ('debounce',
     'timer_id uuid, process_manager text, correlation_id text, quiet interval, '
     'payload jsonb DEFAULT ''{}''::jsonb, max_wait interval DEFAULT NULL::interval',
     'timers.schedule_outcome', false),
    ('timer_id', 'namespace uuid, name text', 'uuid', true),
    ('cancel', 'timer_id uuid', 'boolean', true),
    ('cancel_correlation', 'process_manager text, correlation_id text', 'bigint', true),
    ('claim_due',
     'process_manager text DEFAULT NULL::text, max_timers integer DEFAULT 1, '
     'lease interval DEFAULT NULL::interval, as_of timestamp with time zone DEFAULT clock_timestamp()',
     'SETOF timers.claimed_timer', true),
    ('renew',
     'timer_id uuid, claim_token uuid, lease interval DEFAULT NULL::interval',
     'timestamp with time zone', true),
    ('mark_fired', 'timer_id uuid, event_id uuid, claim_token uuid DEFAULT NULL::uuid', 'boolean', true),
    ('release',
     'timer_id uuid, claim_token uuid, fire_at timestamp with time zone DEFAULT clock_timestamp(), '
     'error text DEFAULT NULL::text',
     'boolean', true),
    ('fire_due',
     'as_of timestamp with time zone DEFAULT clock_timestamp(), max_timers integer DEFAULT 1000',
     'integer', true),
    ('lookup', 'timer_id uuid', 'SETOF timers.timer', true),
    ('count_due', 'as_of timestamp with time zone DEFAULT clock_timestamp()', 'bigint', false),
    ('find_stuck',
     'min_age interval DEFAULT NULL::interval, min_attempts integer DEFAULT NULL::integer, '
     'as_of timestamp with time zone DEFAULT clock_timestamp()',
     'SETOF timers.timer', false),
    ('count_stuck',
     'min_age interval DEFAULT NULL::interval, min_attempts integer DEFAULT NULL::integer, '
     'as_of timestamp with time zone DEFAULT clock_timestamp()',
     'bigint', false),
    ('requeue', 'timer_id uuid', 'boolean', false),
    ('requeue_stuck',
     'older_than interval DEFAULT NULL::interval, as_of timestamp with time zone DEFAULT clock_timestamp()',
     'bigint', true),
    ('dead_letter', 'timer_id uuid, reason text', 'boolean', false),
    ('retry_dead', 'timer_id uuid, fire_at timestamp with time zone DEFAULT clock_timestamp()', 'boolean', false),
    ('purge', 'before timestamp with time zone, include_dead boolean DEFAULT false', 'bigint', false),
    ('inspect', 'timer_id uuid', 'SETOF timers.timer_inspection', true),
    ('find_pending',
     'process_manager text DEFAULT NULL::text, correlation_id text DEFAULT NULL::text, '
     'status timers.timer_status DEFAULT NULL::timers.timer_status, '
     'due_before timestamp with time zone DEFAULT NULL::timestamp with time zone, '
     'page_size integer DEFAULT 50, cursor text DEFAULT NULL::text',
     'SETOF timers.timer_inspection', true),
    ('find_dead',
     'process_manager text DEFAULT NULL::text, correlation_id text DEFAULT NULL::text, '
     'reason text DEFAULT NULL::text, reason_match text DEFAULT ''exact''::text, '
     'died_before timestamp with time zone DEFAULT NULL::timestamp with time zone, '
     'died_after timestamp with time zone DEFAULT NULL::timestamp with time zone, '
     'page_size integer DEFAULT 50, cursor text DEFAULT NULL::text',
     'SETOF timers.timer_inspection', true),
    ('pending_page',
     'process_manager text DEFAULT NULL::text, correlation_id text DEFAULT NULL::text, '
     'status timers.timer_status DEFAULT NULL::timers.timer_status, '
     'due_before timestamp with time zone DEFAULT NULL::timestamp with time zone, '
     'page_size integer DEFAULT 50, cursor text DEFAULT NULL::text',
     'jsonb', true),
    ('dead_page',
     'process_manager text DEFAULT NULL::text, correlation_id text DEFAULT NULL::text, '
     'reason text DEFAULT NULL::text, reason_match text DEFAULT ''exact''::text, '
     'died_before timestamp with time zone DEFAULT NULL::timestamp with time zone, '
     'died_after timestamp with time zone DEFAULT NULL::timestamp with time zone, '
     'page_size integer DEFAULT 50, cursor text DEFAULT NULL::text',
     'jsonb', true),
    ('pending_statuses', '', 'timers.timer_status[]', true),
    ('claim_dead',
     'timer_id uuid, lease interval DEFAULT ''00:05:00''::interval, '
     'expected_process_manager text DEFAULT NULL::text, expected_attempts integer DEFAULT NULL::integer, '
     'claimed_by text DEFAULT SESSION_USER',
     'timers.claimed_timer', true),
    ('renew_resume', 'timer_id uuid, claim_token uuid, lease interval', 'timestamp with time zone', true),
    ('complete_resume', 'timer_id uuid, claim_token uuid, event_id uuid', 'void', true),
    ('park_resume', 'timer_id uuid, claim_token uuid, reason text DEFAULT NULL::text', 'void', true),
    ('cancel_resume', 'timer_id uuid, claim_token uuid', 'void', true),
    ('recover_expired_resumes', 'as_of timestamp with time zone DEFAULT clock_timestamp()', 'bigint', true),
    ('configure',
     'process_manager text, delivery timers.delivery DEFAULT NULL::timers.delivery, '
     'channel text DEFAULT NULL::text, handler text DEFAULT NULL::text, run_as regrole DEFAULT NULL::regrole, '
     'max_attempts integer DEFAULT NULL::integer, lease interval DEFAULT NULL::interval, '
     'retry_delay interval DEFAULT NULL::interval, '
     'retry_factor double precision DEFAULT NULL::double precision, '
     'retry_ceiling interval DEFAULT NULL::interval, max_concurrent integer DEFAULT NULL::integer, '
     'handler_timeout interval DEFAULT NULL::interval, retention interval DEFAULT NULL::interval',
     'void', true),
    ('pause', 'process_manager text', 'boolean', true),
    ('unpause', 'process_manager text', 'boolean', true),
    ('take_events',
     'max_events integer DEFAULT 100, process_manager text DEFAULT NULL::text',
     'SETOF timers.outbox', true),
    ('lease_events',
     'max_events integer DEFAULT 100, lease interval DEFAULT ''00:01:00''::interval, '
     'process_manager text DEFAULT NULL::text',
     'SETOF timers.outbox', false),
    ('ack_events', 'positions bigint[]', 'bigint', false),
    ('arm', '', 'void', false),
    ('prometheus', '', 'text', true);

-- A set of columns is the same contract whether it is declared as OUT arguments or as a TABLE.
create temporary view surface as
select p.proname::text as name, regexp_replace(a.arguments, '(^|, )OUT .*', '') as arguments,
       case when r.result = 'SETOF record'
           then format('TABLE(%s)', replace(substring(a.arguments from '(?:^|, )OUT (.*)'), 'OUT ', ''))
           else r.result end as result
from pg_proc p
cross join pg_get_function_arguments(p.oid) as a (arguments)
cross join pg_get_function_result(p.oid) as r (result)
where p.pronamespace = 'timers'::regnamespace and p.proname not like '\_%';

-- Present, and exactly so.
select s.name, s.arguments as found, c.arguments as wanted
from surface s join contract c using (name)
where s.arguments <> c.arguments
order by s.name;
select s.name, s.result as found, c.result as wanted
from surface s join contract c using (name)
where s.result <> c.result
order by s.name;

-- Missing.
select c.name as missing from contract c
where c.there and not exists (select from surface s where s.name = c.name)
order by c.name;

-- Beyond the contract, and overloads: none that nobody knows of.
select s.name as unknown from surface s
where not exists (select from contract c where c.name = s.name)
order by s.name;
select s.name as overloaded from surface s group by s.name having count(*) > 1 order by s.name;

-- Enums, in order: outcomes and states are compared by clients.
select t.typname, string_agg(e.enumlabel, ', ' order by e.enumsortorder) as labels
from pg_type t join pg_enum e on e.enumtypid = t.oid
where t.typnamespace = 'timers'::regnamespace
group by t.typname order by t.typname;

-- Row types that clients unpack by position.
select c.relname,
       string_agg(format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum) as columns
from pg_class c join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = 'timers'::regnamespace and c.relkind = 'c' and c.relname in ('timer_request', 'claimed_timer')
  and a.attnum > 0 and not a.attisdropped
group by c.relname order by c.relname;
select a.attname as timer_inspection, format_type(a.atttypid, a.atttypmod) as type
from pg_attribute a
where a.attrelid = 'timers.timer_inspection'::regclass and a.attnum > 0 and not a.attisdropped
order by a.attnum;

-- The outbox begins with what is published; more columns may follow.
select string_agg(format('%s %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' order by a.attnum) as outbox
from pg_attribute a
where a.attrelid = 'timers.outbox'::regclass and a.attnum between 1 and 9;
select n.name as missing_in_timer
from unnest(array['timer_id', 'process_manager', 'correlation_id', 'fire_at', 'payload', 'status', 'attempts',
                  'last_error', 'fired_event_id']) as n (name)
where not exists (
    select from pg_attribute a
    where a.attrelid = 'timers.timer'::regclass and a.attname = n.name and not a.attisdropped);

-- Text keys outlive an upgrade of the C library: their order is that of the bytes.
select format('%s.%s', a.attrelid::regclass, a.attname) as wrong_collation
from pg_attribute a join pg_class c on c.oid = a.attrelid
where c.relnamespace = 'timers'::regnamespace and c.relkind = 'r' and a.attnum > 0 and a.attcollation <> 0
  and a.attname in ('process_manager', 'correlation_id', 'channel', 'kind')
  and a.attcollation <> 'pg_catalog."C"'::regcollation
order by 1;

-- No partition moves a row, and no rule or trigger of ours is of the kind that replication skips.
select c.relname, c.relkind from pg_class c
where c.relnamespace = 'timers'::regnamespace and c.relkind in ('p', 'm', 'f');
select t.tgrelid::regclass as table, t.tgname from pg_trigger t join pg_class c on c.oid = t.tgrelid
where c.relnamespace = 'timers'::regnamespace and not t.tgisinternal and t.tgenabled <> 'A';

-- Everything belongs to the extension, so that a dump and DROP EXTENSION treat it right.
select p.oid::regprocedure as stray from pg_proc p
where p.pronamespace = 'timers'::regnamespace
  and not exists (
    select from pg_depend d
    where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e');
select c.oid::regclass as stray from pg_class c
where c.relnamespace = 'timers'::regnamespace and c.relkind in ('r', 'v', 'S')
  and not exists (
    select from pg_depend d
    where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('e', 'i'));

-- What users store is dumped: timers, claims, events, settings.
select c.oid::regclass as dumped
from pg_extension e cross join unnest(e.extconfig) as u (oid) join pg_class c on c.oid = u.oid
where e.extname = 'durable_timers'
  and c.relname in ('timer', 'claim', 'outbox', 'outbox_position_seq', 'process_manager')
order by c.relname;

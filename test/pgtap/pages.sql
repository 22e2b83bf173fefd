-- Intent: pages show what passes the filters, all of it, once and in order, whatever their size and whatever goes on
-- beside them.
begin;
select plan(179);

-- Six hundred timers over few process managers, correlation ids, times and reasons, so that there are ties of all
-- kinds; in every state, with ids in no order.
select setseed(0.42) \g /dev/null
create temporary table seed as
select md5(n::text)::uuid as id, n, 'tap pages ' || chr(97 + n % 3) as lane, 'saga ' || n % 5 as correlation,
       timestamptz '2090-01-01 00:00+00' + floor(random() * 6) * interval '1 day' as fire_at,
       (enum_range(null::timers.timer_status))[1 + floor(random() * 6)::integer] as status,
       (array['100% sure', '100 percent', 'a_b', 'aXb', E'back\\slash', 'back', null,
           ''])[1 + floor(random() * 8)::integer]
           as reason,
       timestamptz '2020-01-01 00:00+00' + floor(random() * 6) * interval '1 hour' as died_at
from generate_series(1, 600) n;
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, payload, status, last_error, died_at)
select id, lane, correlation, fire_at, to_jsonb(n), status, case when status in ('dead', 'resuming') then reason end,
       case when status in ('dead', 'resuming') then died_at end
from seed order by random();
insert into timers.claim (timer_id, token, kind, attempt, lease_until, claimed_by)
select id, gen_random_uuid(), case status when 'firing' then 'external' else 'resume' end, 1, '2099-01-01 00:00+00',
    'me'
from seed where status in ('firing', 'resuming');
-- Some were postponed: they stand where they were.
select timers.schedule(s.id, s.lane, s.correlation, s.fire_at + interval '30 days', to_jsonb(s.n))
from seed s where s.status = 'scheduled' and s.n % 7 = 0 \g /dev/null

-- All pages of a call, one after the other.
create function pg_temp.walk(call text, size integer) returns uuid[]
language plpgsql as $$
declare
    met uuid[] := '{}';
    page uuid[];
    behind text;
begin
    loop
        execute format('select array_agg(f.timer_id), (array_agg(f.cursor))[count(*)]
                        from timers.%s, page_size => $1, cursor => $2) f', call) into page, behind using size, behind;
        met := met || page;
        if page is null or cardinality(page) < size then
            return met;
        end if;
    end loop;
end
$$;
-- The same as JSON, by its own cursors.
create function pg_temp.walk_json(call text, size integer) returns uuid[]
language plpgsql as $$
declare
    met uuid[] := '{}';
    page jsonb;
begin
    loop
        execute format('select timers.%s, page_size => $1, cursor => $2)', call) into page
        using size, page ->> 'next_cursor';
        met := met || array(select (i ->> 'timer_id')::uuid from jsonb_array_elements(page -> 'items') i);
        exit when page ->> 'next_cursor' is null;
    end loop;
    return met;
end
$$;

-- Each combination of filters, beside the table itself.
create temporary table filter (place serial, arguments text, condition text);
insert into filter (arguments, condition)
select concat_ws(', ', 'process_manager => ' || p.argument, 'correlation_id => ' || c.argument,
                 'status => ' || s.argument, 'due_before => ' || d.argument),
       concat_ws(' and ', 't.status = any (timers.pending_statuses())', 't.process_manager = ' || p.argument,
                 't.correlation_id = ' || c.argument, 't.status = ' || s.argument, 't.fire_at < ' || d.argument)
from (values (null), ('''tap pages b''')) p (argument), (values (null), ('''saga 3''')) c (argument),
     (values (null), ('''scheduled'''), ('''firing''')) s (argument),
     (values (null), ('timestamptz ''2090-01-03 00:00+00''')) d (argument);
create function pg_temp.pending(condition text) returns uuid[]
language plpgsql as $$
declare
    ids uuid[];
begin
    execute format('select coalesce(array_agg(t.timer_id order by t.process_manager, t.wake_at, t.timer_id), ''{}'')
                    from timers.timer t where %s', condition) into ids;
    return ids;
end
$$;
select ok(cardinality(pg_temp.pending(f.condition)) > 3, 'there are some: ' || f.condition)
    from filter f order by place;
select unnest(array[
    is(pg_temp.walk('find_pending(' || coalesce(nullif(f.arguments, ''), 'null'), 1 + f.place % 9),
       pg_temp.pending(f.condition), 'find_pending ' || f.arguments),
    is(pg_temp.walk_json('pending_page(' || coalesce(nullif(f.arguments, ''), 'null'), 3 + f.place % 9),
       pg_temp.pending(f.condition), 'pending_page ' || f.arguments)])
from filter f order by place;

truncate filter;
insert into filter (arguments, condition)
select concat_ws(', ', 'process_manager => ' || p.argument, 'correlation_id => ' || c.argument, r.argument, d.argument),
       concat_ws(' and ', 't.status = ''dead''', 't.process_manager = ' || p.argument,
                 't.correlation_id = ' || c.argument, r.condition, d.condition)
from (values (null), ('''tap pages b''')) p (argument), (values (null), ('''saga 3''')) c (argument),
     (values (null, null), ('died_before => ''2020-01-01 03:00+00''', 't.died_at < ''2020-01-01 03:00+00'''),
             ('died_after => ''2020-01-01 01:00+00'', died_before => ''2020-01-01 04:00+00''',
              't.died_at > ''2020-01-01 01:00+00'' and t.died_at < ''2020-01-01 04:00+00''')) d (argument, condition),
     (values (null, null), ('reason => ''a_b''', 't.last_error = ''a_b'''),
             ('reason => ''100'', reason_match => ''prefix''', 'left(t.last_error, 3) = ''100'''),
             ('reason_match => ''none''', 't.last_error is null')) r (argument, condition)
where p.argument is null or c.argument is null;
create function pg_temp.dead(condition text) returns uuid[]
language plpgsql as $$
declare
    ids uuid[];
begin
    execute format('select coalesce(array_agg(t.timer_id order by t.died_at, t.timer_id), ''{}'')
                    from timers.timer t where %s', condition) into ids;
    return ids;
end
$$;
select unnest(array[
    is(pg_temp.walk('find_dead(' || coalesce(nullif(f.arguments, ''), 'null'), 1 + f.place % 9),
       pg_temp.dead(f.condition), 'find_dead ' || f.arguments),
    is(pg_temp.walk_json('dead_page(' || coalesce(nullif(f.arguments, ''), 'null'), 1 + f.place % 9),
       pg_temp.dead(f.condition), 'dead_page ' || f.arguments)])
from filter f order by place;

-- Reasons are compared character by character; what is a pattern elsewhere is none here.
select is((select array_agg(distinct f.last_error order by f.last_error)
           from timers.find_dead(reason => m.reason, reason_match => m.match, page_size => 1000) f),
    m.found, format('%s %s', m.match, m.reason))
from (values ('exact', '100% sure', '{100% sure}'::text[]), ('exact', '100%', null), ('exact', 'a_b', '{a_b}'),
             ('exact', '', '{""}'), ('exact', 'A_B', null), ('prefix', '100%', '{100% sure}'),
             ('prefix', 'a_', '{a_b}'), ('prefix', E'back\\', E'{"back\\\\slash"}'),
             ('contains', '%', '{100% sure}'), ('contains', '_', '{a_b}'), ('contains', E'\\', E'{"back\\\\slash"}'),
             ('contains', '% s', '{100% sure}'), ('contains', '.', null), ('none', null, '{null}')) m (match, reason,
                 found);
select is((select array_agg(distinct f.last_error collate "C")
           from timers.find_dead(reason => '', reason_match => m, page_size => 1000) f),
    array['', '100 percent', '100% sure', 'aXb', 'a_b', 'back', E'back\\slash'],
        'an empty ' || m || ' is in every reason')
from unnest(array['prefix', 'contains']) m;
select is((select count(*) from timers.find_dead(reason => 'back', reason_match => null, page_size => 1000)),
    (select count(*) from timers.find_dead(reason => 'back', page_size => 1000)),
        'compared exactly unless told otherwise');

-- What is shown of each is what inspect shows.
select is_empty($$ select to_jsonb(f) - '{cursor,age,lag,next_due}'::text[]
    from timers.find_pending(page_size => 1000) f
    except select to_jsonb(i) - '{cursor,age,lag,next_due}'::text[] from timers.timer t,
        timers.inspect(t.timer_id) i $$,
    'pending timers as inspect shows them');
select is_empty($$ select to_jsonb(f) - '{cursor,age}'::text[] from timers.find_dead(page_size => 1000) f
    except select to_jsonb(i) - '{cursor,age}'::text[] from timers.timer t, timers.inspect(t.timer_id) i $$,
    'and dead ones');
select is(pg_temp.walk('find_pending(null', 1000), pg_temp.walk('find_pending(null', 7), 'whatever the size');

-- JSON: the same names; spans of time in seconds.
create temporary table json_page as select timers.pending_page('tap pages a', page_size => 2) as page;
select is((select array_agg(k order by k) from json_page, jsonb_object_keys(page) k),
    '{items,next_cursor,observed_at}', 'a page');
select set_eq(
    $$ select k from json_page, jsonb_object_keys(page -> 'items' -> 0) k $$,
    $$ select case when a.atttypid = 'interval'::regtype then a.attname || '_seconds' else a.attname end
       from pg_attribute a where a.attrelid = 'timers.timer_inspection'::regclass and a.attnum > 0
       union all select 'due_in_seconds' $$, 'its items have the columns of an inspection');
select is((select page ->> 'next_cursor' from json_page), (select page -> 'items' -> 1 ->> 'cursor' from json_page),
    'the next page begins behind its last item');
select ok((select (page ->> 'observed_at')::timestamptz between now() and clock_timestamp() from json_page),
    'it says when it was read');
select is((select (page -> 'items' -> 0 ->> 'due_in_seconds')::numeric from json_page),
    (select extract(epoch
        from (page -> 'items' -> 0 ->> 'fire_at')::timestamptz - (page ->> 'observed_at')::timestamptz)
     from json_page), 'and how long each has till then');
select is(timers.pending_page('tap nobody') - 'observed_at', '{"items": [], "next_cursor": null}', 'an empty page');
select is(timers.dead_page('tap nobody') - 'observed_at', '{"items": [], "next_cursor": null}', 'of either kind');
set local intervalstyle = iso_8601;
select is((timers.pending_page('tap pages a', page_size => 1) -> 'items' -> 0 ->> 'lease_seconds')::numeric, 300.0,
    'however the session writes intervals');
reset intervalstyle;

-- What comes, goes and changes state between pages changes nothing for the rest.
create function pg_temp.beside(step integer) returns void
language plpgsql as $$
begin
    -- In front of the walk and behind it: new ones, gone ones, and others that are claimed, cancelled, postponed.
    perform timers.schedule(gen_random_uuid(), 'tap pages ' || chr(97 + step % 3), 'new',
                            timestamptz '2090-01-01 00:00+00' + step * interval '7 hours');
    delete from timers.timer where timer_id in (
        select id from seed where n % 4 = 1 and status = 'scheduled' order by md5(id::text || step) limit 2);
    perform timers.cancel(id) from (
        select id from seed where n % 4 = 1 and status in ('scheduled',
            'firing') order by md5(step || id::text) limit 2) s;
    perform timers.schedule(id, lane, correlation, fire_at + interval '1 year') from (
        select * from seed where n % 4 = 1 and status = 'scheduled' order by md5(id::text || -step) limit 2) s;
    perform timers.dead_letter(id, 'given up') from (
        select * from seed where n % 4 = 1 and status = 'firing' order by md5(id::text || -step) limit 1) s;
    -- These only change their state, and are pending all the time.
    update timers.timer set status = 'firing' where timer_id in (
        select id from seed where n % 4 = 2 and status = 'scheduled' order by md5(id::text || step) limit 3);
    insert into timers.claim (timer_id, token, kind, attempt, lease_until, claimed_by)
    select t.timer_id, gen_random_uuid(), 'external', 1, '2099-01-01', 'me' from timers.timer t
    where t.status = 'firing' on conflict do nothing;
end
$$;
create function pg_temp.walk_beside(size integer) returns uuid[]
language plpgsql as $$
declare
    met uuid[] := '{}';
    page uuid[];
    behind text;
    step integer := 0;
begin
    loop
        select array_agg(f.timer_id), (array_agg(f.cursor))[count(*)] into page, behind
        from timers.find_pending(page_size => size, cursor => behind) f;
        met := met || page;
        exit when page is null or cardinality(page) < size;
        perform pg_temp.beside(step);
        step := step + 1;
    end loop;
    return met;
end
$$;
savepoint before;
create temporary table met as select m.id, m.place from unnest(pg_temp.walk_beside(5)) with ordinality m (id, place);
select cmp_ok((select count(*) from met), '>', 150::bigint, 'a long walk');
select is_empty('select id from met group by id having count(*) > 1', 'meets none twice');
select is_empty($$ select id from seed where status in ('scheduled', 'firing') and n % 4 <> 1 except select id
    from met $$,
    'and misses none that was there all the time');
rollback to before;

-- A dead timer that is resumed and parked comes back to its place.
select f.timer_id as third, f.cursor as behind from timers.find_dead(page_size => 3) f
order by f.died_at desc, f.timer_id desc limit 1 \gset
select claim_token from timers.claim_dead(:'third') \gset
select is((select count(*) from timers.find_dead(page_size => 1000) f where f.timer_id = :'third'), 0::bigint,
    'what is being resumed is not among the dead');
select timers.park_resume(:'third', :'claim_token', 'parked') \g /dev/null
select is((select array_agg(f.timer_id) from timers.find_dead(page_size => 3) f)[3], :'third'::uuid,
    'until it is parked');
select is((select count(*) from timers.find_dead(page_size => 1000, cursor => :'behind') f where f.timer_id = :'third'),
    0::bigint, 'and is not met again');

-- A tie that is no small part of the table, beside others of its time.
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
select md5('tie ' || n)::uuid, 'tap tie ' || n % 2, 'saga', '2090-01-01 00:00+00' from generate_series(1, 30000) n;
select timers.cancel(md5('tie ' || n)::uuid) from generate_series(4, 30000, 50) n \g /dev/null
select is(pg_temp.walk('find_pending(''tap tie 0''', 700),
    pg_temp.pending('t.process_manager = ''tap tie 0'' and t.status = ''scheduled'''), 'ten thousand at one instant');
delete from timers.timer where process_manager like 'tap tie%';

select * from finish();
rollback;

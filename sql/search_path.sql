-- Intent: operators, functions, types and tables that a caller puts before pg_catalog are never run with the owner's
-- rights, nor instead of the real ones.
set timezone = 'UTC';
set client_min_messages = warning;

create role regress_attacker;
create schema regress_trap;
grant usage on schema regress_trap to regress_attacker;
grant usage on schema timers to regress_attacker;
grant execute on all functions in schema timers to regress_attacker;

-- A trap tells whose rights it was run with.
create table regress_trap.sprung (id integer generated always as identity, who name, trap text);
grant insert, select on regress_trap.sprung to public;
create function regress_trap.spring(trap text) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    insert into regress_trap.sprung (who, trap) values (current_user, spring.trap);
end
$$;

-- Every comparison and arithmetic operator over the types that the extension's SQL touches, leading to its namesake.
do $$
declare
    types regtype[] := array['bool', 'text', 'name', 'uuid', 'int4', 'int8', 'float8', 'numeric', 'timestamptz',
                             'interval', 'anyenum', 'anyarray', 'tid', 'xid', 'jsonb', 'oid'];
    o record;
begin
    for o in
        select row_number() over () as n, op.oprname as name, op.oprleft::regtype as l, op.oprright::regtype as r,
               op.oprresult::regtype as result
        from pg_operator op
        where op.oprnamespace = 'pg_catalog'::regnamespace
          and op.oprname in ('=', '<>', '<', '<=', '>', '>=', '+', '-', '*', '/', '||', '~~')
          and op.oprleft = any (types) and op.oprright = any (types)
    loop
        execute format(
            'create function regress_trap.op_%s(a %s, b %s) returns %s language plpgsql as %L', o.n, o.l, o.r, o.result,
            format('begin perform regress_trap.spring(%L); return a operator(pg_catalog.%s) b; end',
                   o.name || ' ' || o.l, o.name));
        execute format('create operator regress_trap.%s (leftarg = %s, rightarg = %s, function = regress_trap.op_%s)',
                       o.name, o.l, o.r, o.n);
    end loop;
end
$$;
select count(*) > 150 as enough_operators from pg_operator where oprnamespace = 'regress_trap'::regnamespace;

-- Functions by the names that the extension's SQL calls.
create function regress_trap.clock_timestamp() returns timestamptz language plpgsql as
    $$ begin perform regress_trap.spring('clock_timestamp'); return pg_catalog.clock_timestamp(); end $$;
create function regress_trap.now() returns timestamptz language plpgsql as
    $$ begin perform regress_trap.spring('now'); return pg_catalog.now(); end $$;
create function regress_trap.gen_random_uuid() returns uuid language plpgsql as
    $$ begin perform regress_trap.spring('gen_random_uuid'); return pg_catalog.gen_random_uuid(); end $$;
create function regress_trap.octet_length(text) returns integer language plpgsql as
    $$ begin perform regress_trap.spring('octet_length'); return pg_catalog.octet_length($1); end $$;
create function regress_trap.unnest(anyarray) returns setof anyelement language plpgsql as
    $$ begin perform regress_trap.spring('unnest'); return query select pg_catalog.unnest($1); end $$;
create function regress_trap.format(text, variadic "any") returns text language internal as 'text_format';
create function regress_trap.pg_notify(text, text) returns void language plpgsql as
    $$ begin perform regress_trap.spring('pg_notify'); end $$;
create function regress_trap.jsonb_build_object(variadic text[]) returns jsonb language plpgsql as
    $$ begin perform regress_trap.spring('jsonb_build_object'); return '{}'; end $$;
create function regress_trap.make_interval(secs double precision) returns interval language plpgsql as
    $$ begin perform regress_trap.spring('make_interval'); return '1 minute'::pg_catalog.interval; end $$;
create function regress_trap.strpos(text, text) returns integer language plpgsql as
    $$ begin perform regress_trap.spring('strpos'); return pg_catalog.strpos($1, $2); end $$;
create function regress_trap.starts_with(text, text) returns boolean language plpgsql as
    $$ begin perform regress_trap.spring('starts_with'); return pg_catalog.starts_with($1, $2); end $$;
create function regress_trap.current_setting(text, boolean) returns text language plpgsql as
    $$ begin perform regress_trap.spring('current_setting'); return pg_catalog.current_setting($1, $2); end $$;
create function regress_trap._workers() returns table (worker text, state text, explanation text) language plpgsql as
    $$ begin perform regress_trap.spring('_workers'); end $$;
create function regress_trap._event_id(uuid, timestamptz) returns uuid language plpgsql as
    $$ begin perform regress_trap.spring('_event_id'); return $1; end $$;
create function regress_trap.step(state bigint) returns bigint language plpgsql as
    $$ begin perform regress_trap.spring('count'); return state operator(pg_catalog.+) 1; end $$;
create aggregate regress_trap.count(*) (sfunc = regress_trap.step, stype = bigint, initcond = '0');

-- Tables and types by the names of ours.
create table regress_trap.timer (like timers.timer);
create table regress_trap.claim (like timers.claim);
create table regress_trap.outbox (like timers.outbox);
create table regress_trap.process_manager (like timers.process_manager);
create type regress_trap.timer_status as enum ('scheduled');
create domain regress_trap.text as pg_catalog.text;
create domain regress_trap.uuid as pg_catalog.uuid;
grant all on all tables in schema regress_trap to regress_attacker;

-- The traps work: they spring for whoever is caught by his own search_path.
set role regress_attacker;
set search_path = regress_trap, pg_catalog, pg_temp;
select id = id as caught from (select '00000000-0000-4000-8009-000000000001'::pg_catalog.uuid) i (id);
select who, trap from sprung;
reset role;
set search_path = pg_catalog;
truncate regress_trap.sprung;

-- Now every function, on a path as a user or an attacker may have it. Two rounds: plans are made, then used again.
set track_functions = 'all';
set role regress_attacker;
set search_path = regress_trap, pg_catalog, pg_temp;
begin;
do $$
declare
    pm pg_catalog.text;
    token pg_catalog.uuid;
    id pg_catalog.uuid;
    taken pg_catalog.int8;
begin
    for round in 1 .. 2 loop
        id := ('00000000-0000-4000-8009-00000000000' operator(pg_catalog.||) round)::pg_catalog.uuid;
        perform timers.timer_id(id, 'name');
        foreach pm in array array['regress out', 'regress notify', 'regress ext'] loop
            perform timers.configure(pm, 'external', 'bell', max_attempts => 5, lease => '1 minute');
        end loop;
        perform timers.configure('regress out', 'outbox');
        perform timers.configure('regress notify', 'notify', 'bell');
        perform timers.pause('regress out');
        perform timers.pause('regress out');
        perform timers.unpause('regress out');
        -- Scheduling in every mode, on a new row and on an old one.
        perform timers.schedule(id, 'regress ext', 'saga', '2090-01-01 00:00+00');
        perform timers.schedule(id, 'regress ext', 'saga', '2090-01-02 00:00+00', '{}', 'later');
        perform timers.schedule(id, 'regress ext', 'saga', '2090-01-01 00:00+00', '{}', 'earlier');
        perform timers.schedule(id, 'regress ext', 'saga', '2090-01-01 00:00+00', '{}', 'keep');
        perform timers.schedule(id, 'regress ext', 'saga', '2090-01-01 00:00+00', '{}', 'replace');
        perform timers.schedule_in(id, 'regress ext', 'saga', '-1 second');
        perform timers.schedule_once(id, 'regress ext', 'saga', '2010-01-01 00:00+00');
        perform timers.lookup(id);
        -- Claims.
        select c.claim_token into strict token
        from timers.claim_due('regress ext', 1, '1 minute', '2095-01-01 00:00+00') c;
        perform timers.renew(id, token);
        perform timers.renew(id, token, '2 minutes');
        perform timers.release(id, token, '2010-01-01 00:00+00', 'error');
        select c.claim_token into strict token from timers.claim_due() c;
        perform timers.requeue_stuck(as_of => '2095-01-01 00:00+00');
        perform timers.requeue_stuck('1 second');
        select c.claim_token into strict token from timers.claim_due('regress ext') c;
        perform timers.mark_fired(id, token, token);
        perform timers.mark_fired(id, token);
        -- Delivery.
        perform timers.schedule(pg_catalog.gen_random_uuid(), 'regress out', 'saga', '2090-01-01 00:00+00');
        perform timers.schedule(pg_catalog.gen_random_uuid(), 'regress notify', 'saga', '2090-01-01 00:00+00');
        perform timers.fire_due('2095-01-01 00:00+00');
        perform timers.fire_due();
        select pg_catalog.count(*) into taken from timers.take_events();
        perform timers.take_events(1, 'regress out');
        -- Cancelling.
        perform timers.schedule(pg_catalog.gen_random_uuid(), 'regress ext', 'saga 2', '2010-01-01 00:00+00');
        perform timers.claim_due('regress ext', 1);
        perform timers.cancel_correlation('regress ext', 'saga 2');
        perform timers.cancel(id);
        -- A ceiling.
        perform timers.configure('regress ext', max_attempts => 0);
        perform timers.schedule(pg_catalog.gen_random_uuid(), 'regress ext', 'saga', '2010-01-01 00:00+00');
        perform timers.claim_due('regress ext', 1);
        -- Many at once, and debouncing.
        perform timers.schedule_many(array[(id, 'regress out', 'many', '2090-01-01 00:00+00', '{}')]::timers.timer_request[]);
        id := pg_catalog.gen_random_uuid();
        perform timers.schedule_many(array[(id, 'regress out', 'many', '2090-01-01 00:00+00', '{}')]::timers.timer_request[]);
        perform timers.debounce(id, 'regress out', 'saga', '1 second', '{}', '1 minute');
        perform timers.debounce(id, 'regress out', 'saga', '2 seconds');
        -- Repair.
        perform timers.requeue(id);
        perform timers.dead_letter(id, 'reason');
        perform timers.retry_dead(id, '2010-01-01 00:00+00');
        perform timers.count_due();
        perform timers.count_stuck('1 second', 1);
        perform timers.fire_due();
        perform timers.lease_events();
        perform timers.ack_events('{1, 2}');
        perform timers.purge('2001-01-01 00:00+00', true);
        perform timers.arm();
        -- What watchers call.
        perform timers._workers();
        perform timers._overview();
        perform timers._metrics();
        perform timers.prometheus();
        for n in 1 .. 3 loop
            id := pg_catalog.gen_random_uuid();
            perform timers.schedule(id, 'regress ext', 'saga', '2010-01-01 00:00+00');
            perform timers.dead_letter(id, 'timer');
        end loop;
        -- Looking, in every way and at every kind.
        perform timers.inspect(id);
        for pm in select f.cursor from timers.find_pending(page_size => 1) f loop
            perform timers.find_pending(page_size => 1, cursor => pm);
        end loop;
        perform timers.find_pending('regress ext', 'saga', 'firing', '2095-01-01 00:00+00');
        perform timers.find_pending('regress ext', due_before => '2095-01-01 00:00+00');
        perform timers.pending_page(page_size => 1);
        perform timers.pending_statuses();
        for pm in select f.cursor from timers.find_dead(page_size => 1) f loop
            perform timers.find_dead(page_size => 1, cursor => pm);
        end loop;
        foreach pm in array array['exact', 'prefix', 'contains'] loop
            perform timers.find_dead('regress ext', 'saga', 'timer', pm, '2095-01-01 00:00+00', '2001-01-01 00:00+00');
            perform timers.find_dead('regress ext', reason => 'timer', reason_match => pm);
        end loop;
        perform timers.dead_page(reason_match => 'none');
        perform timers.dead_page('regress ext', page_size => 1);
        -- Resuming.
        for n in 1 .. 4 loop
            id := (select f.timer_id from timers.find_dead('regress ext', page_size => 1) f);
            select c.claim_token into strict token from timers.claim_dead(id, '1 minute', 'regress ext') c;
            perform timers.renew_resume(id, token, '2 minutes');
            if n operator(pg_catalog.=) 1 then
                perform timers.park_resume(id, token, 'parked');
            elsif n operator(pg_catalog.=) 2 then
                perform timers.recover_expired_resumes('2095-01-01 00:00+00');
            elsif n operator(pg_catalog.=) 3 then
                perform timers.complete_resume(id, token, token);
            else
                perform timers.cancel_resume(id, token);
            end if;
        end loop;
    end loop;
end
$$;
reset role;
set search_path = pg_catalog;
select who, trap, count(*) from regress_trap.sprung where who <> 'regress_attacker'
group by who, trap order by who, trap;
select p.oid::regprocedure as never_called from pg_proc p
where p.pronamespace = 'timers'::regnamespace
  and not exists (select from pg_stat_xact_user_functions f where f.funcid = p.oid)
order by p.proname;
reset track_functions;
-- The attacker's own tables got nothing, ours got all.
select (select count(*) from regress_trap.timer) as trapped_timers,
       (select count(*) from regress_trap.outbox) as trapped_events,
       (select count(*) from timers.timer) as timers;
rollback;

-- A temporary table of a name of ours changes nothing either.
set role regress_attacker;
begin;
set local search_path = pg_temp, pg_catalog;
create temporary table timer (timer_id uuid, status text);
create temporary table claim (timer_id uuid);
select timers.schedule('00000000-0000-4000-8009-000000000009', 'regress ext', 'saga', '2090-01-01 00:00+00');
select count(*) from timer;
select status from timers.lookup('00000000-0000-4000-8009-000000000009');
rollback;
reset role;

drop schema regress_trap cascade;
drop owned by regress_attacker;
drop role regress_attacker;

-- Intent: a handler is set only by who may use it, runs as nobody whom its configurer is not, and is what handlers are.
begin;
select plan(71);

create role tap_operator;
create role tap_app;
create role tap_stranger;
create role "Tap Odd ""Name""";
grant tap_app to tap_operator;
grant usage on schema timers to tap_operator;
grant execute on all functions in schema timers to tap_operator;
create schema tap_code;
grant usage on schema tap_code to public;
set local search_path = public, pg_catalog;

create function tap_code.handle(t timers.timer) returns uuid language sql as 'select gen_random_uuid()';
create function tap_code."Odd.""Name"(t timers.timer) returns uuid language sql as 'select gen_random_uuid()';
create function tap_code.denied(t timers.timer) returns uuid language sql as 'select gen_random_uuid()';
revoke execute on function tap_code.denied(timers.timer) from public;
create function tap_code.text(t timers.timer) returns text language sql as 'select ''x''::text';
create function tap_code.nothing(t timers.timer) returns void language sql as '';
create function tap_code.many(t timers.timer) returns setof uuid language sql as 'select gen_random_uuid()';
create function tap_code.row(t timers.timer) returns timers.timer language sql as 'select t';
create function tap_code.no_argument() returns uuid language sql as 'select gen_random_uuid()';
create function tap_code.other_argument(t jsonb) returns uuid language sql as 'select gen_random_uuid()';
create function tap_code.two_arguments(t timers.timer, u text default '') returns uuid
    language sql as 'select gen_random_uuid()';
create procedure tap_code.procedure(t timers.timer) language sql as '';
create function tap_code.shift(state uuid, t timers.timer) returns uuid language sql as 'select state';
create aggregate tap_code.aggregate(timers.timer) (sfunc = tap_code.shift, stype = uuid);
create function public.unqualified(t timers.timer) returns uuid language sql as 'select gen_random_uuid()';

-- Runs SQL as another role; an error brings the role back with it.
create function pg_temp.as_role(role name, statement text) returns void
language plpgsql as $$
begin
    perform set_config('role', role, true);
    execute statement;
    perform set_config('role', 'none', true);
end
$$;
create function pg_temp.settings(lane text) returns text
language sql stable as $$
    select concat_ws(' ', p.delivery, p.handler, p.run_as, p.max_attempts, p.lease, p.retry_delay, p.retry_factor,
        p.retry_ceiling,
        p.max_concurrent, p.handler_timeout, case when p.paused then 'paused' end)
    from timers.process_manager p where p.process_manager = lane
$$;

-- What is set, and what stays.
select lives_ok($$ select timers.configure('tap h', 'handler', handler => 'tap_code.handle') $$, 'a handler');
select is(pg_temp.settings('tap h'), 'handler tap_code.handle ' || current_user, 'runs as who configured it');
select lives_ok($$ select timers.configure('tap h', run_as => 'tap_app', max_attempts => 0, lease => '1 hour',
    retry_delay => '3 seconds', retry_factor => 1.5, retry_ceiling => '1 minute', max_concurrent => 7,
    handler_timeout => '20 seconds') $$,
    'a role and every limit');
select is(pg_temp.settings('tap h'), 'handler tap_code.handle tap_app 0 01:00:00 00:00:03 1.5 00:01:00 7 00:00:20',
    'are set');
select lives_ok($$ select timers.configure('tap h') $$, 'nothing');
select is(pg_temp.settings('tap h'), 'handler tap_code.handle tap_app 0 01:00:00 00:00:03 1.5 00:01:00 7 00:00:20',
    'changes nothing');
select lives_ok($$ select timers.configure('tap h', retry_delay => '0', retry_ceiling => '0', retry_factor => 1000) $$,
    'limits of limits');
select is(pg_temp.settings('tap h'), 'handler tap_code.handle tap_app 0 01:00:00 00:00:00 1000 00:00:00 7 00:00:20',
    'are allowed');
select lives_ok($$ select timers.configure('tap h', 'outbox') $$, 'another delivery');
select is(pg_temp.settings('tap h'), 'outbox tap_code.handle tap_app 0 01:00:00 00:00:00 1000 00:00:00 7 00:00:20',
    'keeps the handler');
select lives_ok($$ select timers.configure('tap h', 'handler') $$, 'for when it comes back');
select is(pg_temp.settings('tap h'), 'handler tap_code.handle tap_app 0 01:00:00 00:00:00 1000 00:00:00 7 00:00:20',
    'with its role');
select lives_ok($$ select timers.configure('tap h', 'handler') $$, 'again');
select lives_ok($$ select timers.configure('tap n', 'notify', 'tap_channel') $$, 'a channel');
select lives_ok($$ select timers.configure('tap n', 'outbox') $$, 'stays');
select lives_ok($$ select timers.configure('tap n', 'notify') $$, 'likewise');
select lives_ok($$ select timers.configure('tap first', handler => 'tap_code.handle') $$,
    'a handler before its delivery');
select is(pg_temp.settings('tap first'), 'outbox tap_code.handle ' || current_user, 'waits for it');
select lives_ok($$ select timers.configure('tap first', 'handler') $$, 'then is used');

-- Names: kept as what they mean, whatever the search path later.
select lives_ok($$ select timers.configure('tap odd', 'handler', handler => 'tap_code."Odd.""Name"',
    run_as => '"Tap Odd ""Name"""') $$,
    'odd names');
select is(pg_temp.settings('tap odd'), 'handler tap_code."Odd.""Name" Tap Odd "Name"', 'are kept');
select lives_ok($$ select timers.configure('tap odd', handler => 'unqualified') $$, 'a name without a schema');
select matches(pg_temp.settings('tap odd'), '^handler public.unqualified ', 'is kept with it');
select lives_ok($$ select timers.configure('tap odd', handler => 'TAP_code . HANDLE') $$, 'names are folded as in SQL');
select matches(pg_temp.settings('tap odd'), '^handler tap_code.handle ', 'once');

-- Refused: what is no handler.
select throws_ok(format('select timers.configure(''tap x'', ''handler'', handler => %L)', name), state, null, name)
    from (values
    ('tap_code.missing', '42883'), ('no_schema.handle', '42883'), ('tap_code.no_argument', '42883'),
    ('tap_code.other_argument', '42883'), ('tap_code.two_arguments', '42883'), ('handle', '42883'),
    ('tap_code.text', '22023'), ('tap_code.nothing', '22023'), ('tap_code.many', '22023'), ('tap_code.row', '22023'),
    ('tap_code.procedure', '42883'), ('tap_code.aggregate', '22023'), ('', '22023')) c (name, state);
select throws_like(format('select timers.configure(''tap x'', ''handler'', handler => %L)', name), '%"handler"%',
    name || ' names the argument')
from unnest(array['tap_code.missing', 'tap_code.text', 'tap_code.many', '']) name;
select throws_ok($$ select timers.configure('tap x', 'handler') $$, '22023', null,
    'handler delivery without a handler');
select throws_like($$ select timers.configure('tap x', 'handler') $$, '%"handler"%', 'says so');
select throws_like(format('select timers.configure(''tap x'', ''handler'', handler => %L)', name), '%',
    'no name: ' || name)
from (values ('a.b.c.d'), ('tap_code.'), ('.handle'), ('tap_code.handle(timers.timer)'),
    ('tap_code.handle; drop schema tap_code'),
    ('"tap_code.handle')) n (name);
select has_schema('tap_code', 'nothing of it was run');

-- Refused: limits that are none.
select throws_ok(format('select timers.configure(''tap x'', %s)', setting), '22023', null, setting) from unnest(array[
    'max_concurrent => 0', 'max_concurrent => -1', 'handler_timeout => ''0''', 'handler_timeout => ''-1 s''',
        'retry_delay => ''-1 s''',
    'retry_ceiling => ''-1 s''', 'retry_factor => 0.99', 'retry_factor => 1000.1', 'retry_factor => ''NaN''',
    'retry_factor => ''infinity''', 'retry_factor => -2']) setting;
select is(pg_temp.settings('tap x'), null, 'nothing of what is refused is set');

-- Rights: EXECUTE on the handler, membership in the role.
select throws_ok($$ select pg_temp.as_role('tap_operator',
    $q$ select timers.configure('tap x', 'handler', handler => 'tap_code.denied') $q$) $$, '42501', null,
        'a handler that one may not execute');
select throws_ok($$ select pg_temp.as_role('tap_operator',
    format($q$ select timers.configure('tap x', 'handler', handler => 'tap_code.handle', run_as => %L) $q$,
        session_user)) $$, '42501', null,
    'as a superuser');
select throws_ok($$ select pg_temp.as_role('tap_operator',
    $q$ select timers.configure('tap x', 'handler', handler => 'tap_code.handle', run_as => 'tap_stranger') $q$) $$,
        '42501', null,
    'as a role that one is no member of');
select lives_ok($$ select pg_temp.as_role('tap_operator',
    $q$ select timers.configure('tap x', 'handler', handler => 'tap_code.handle', run_as => 'tap_app') $q$) $$,
        'as one that one is a member of');
select is(pg_temp.settings('tap x'), 'handler tap_code.handle tap_app', 'is set');
select throws_ok($$ select pg_temp.as_role('tap_operator',
    $q$ select timers.configure('tap x', run_as => 'tap_stranger') $q$) $$, '42501', null, 'nor later');
-- Whoever names another handler stands for it: a role that was set for the old one does not run it.
select timers.configure('tap x', run_as => session_user::regrole) \g /dev/null
select lives_ok($$ select pg_temp.as_role('tap_operator',
    $q$ select timers.configure('tap x', handler => 'unqualified') $q$) $$,
    'another handler for one that ran as a superuser');
select is(pg_temp.settings('tap x'), 'handler public.unqualified tap_operator', 'runs as who named it');

select * from finish();
rollback;

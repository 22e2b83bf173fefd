-- Intent: inspect shows of a timer in any state what a person needs to know: how late it is, what is left, when it
-- fires next or why it does not, under which settings, and who holds it; never a token.
begin;
select plan(49);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-b007-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.seen(number integer) returns timers.timer_inspection
language sql volatile as $$ select i from timers.inspect(pg_temp.id(number)) i $$;
create function pg_temp.schedule(number integer, lane text, fire_at timestamptz) returns void
language sql volatile as $$
    select timers.schedule(pg_temp.id(number), lane, 'saga ' || number, fire_at, to_jsonb(number))
$$;

select is_empty(format('select timers.inspect(%L)', pg_temp.id(99)), 'no such timer, no row');
select throws_ok('select timers.inspect(null)', '22004', null, 'no id');

-- All of the row is there, under its names, and of the claim all but the token.
select is_empty($$ select attname from pg_attribute where attrelid = 'timers.timer'::regclass and attnum > 0
    except select attname from pg_attribute where attrelid = 'timers.timer_inspection'::regclass and attnum > 0 $$,
    'every column of timers.timer');
select is_empty($$ select attname from pg_attribute
    where attrelid = 'timers.timer_inspection'::regclass and attname ~ 'token' $$, 'and none of a token');
select pg_temp.schedule(1, 'tap inspect', '2090-01-01 00:00+00') \g /dev/null
update timers.timer set last_error = 'busy', forgiven = 0 where timer_id = pg_temp.id(1);
select results_eq(
    $$ select i.timer_id, i.process_manager, i.correlation_id, i.status, i.fire_at, i.payload, i.attempts, i.last_error,
              i.fired_event_id, i.created_at, i.updated_at, i.wake_at, i.died_at, i.forgiven
       from timers.inspect(pg_temp.id(1)) i $$,
    $$ select t.timer_id, t.process_manager collate "default", t.correlation_id collate "default", t.status, t.fire_at,
              t.payload, t.attempts, t.last_error, t.fired_event_id, t.created_at, t.updated_at, t.wake_at, t.died_at,
              t.forgiven
       from timers.timer t where t.timer_id = pg_temp.id(1) $$, 'with their values');

-- Age and lag.
update timers.timer set created_at = clock_timestamp() - interval '3 days' where timer_id = pg_temp.id(1);
select ok((pg_temp.seen(1)).age between '3 days' and '3 days 1 minute', 'its age, from the first schedule on');
select is((pg_temp.seen(1)).lag, null, 'what is not due is not late');
select timers.configure('tap external', 'external') \g /dev/null
select pg_temp.schedule(2, 'tap external', clock_timestamp() - interval '2 hours') \g /dev/null
select ok((pg_temp.seen(2)).lag between '2 hours' and '2 hours 1 minute', 'what is overdue is late');
select timers.claim_due('tap external') \g /dev/null
select ok((pg_temp.seen(2)).lag between '2 hours' and '2 hours 1 minute', 'while it is fired, too');
select timers.mark_fired(pg_temp.id(2), pg_temp.id(98)) \g /dev/null
update timers.timer set updated_at = fire_at + interval '7 minutes' where timer_id = pg_temp.id(2);
select is((pg_temp.seen(2)).lag, interval '7 minutes', 'what has fired was so late');
select pg_temp.schedule(9, 'tap early', '2089-01-01 00:00+00') \g /dev/null
select timers.fire_due('2089-01-01 00:00+00') \g /dev/null
select is((pg_temp.seen(9)).lag, interval '0', 'what was fired ahead of its time was not late');
select is((pg_temp.seen(2)).fired_event_id, pg_temp.id(98), 'and has its event');

-- When it fires next.
select is((pg_temp.seen(1)).next_due, timestamptz '2090-01-01 00:00+00', 'at its time');
select is((pg_temp.seen(1)).explanation, null, 'there is nothing to explain');
select pg_temp.schedule(3, 'tap inspect', clock_timestamp() - interval '2 hours') \g /dev/null
select ok((pg_temp.seen(3)).next_due between now() and clock_timestamp(), 'at once, if that is over');

-- Or why it does not: by state, and what it waits for.
create function pg_temp.why(number integer, says text, what text) returns setof text
language plpgsql as $$
declare
    i timers.timer_inspection := pg_temp.seen(number);
begin
    return next is(i.next_due, null, what);
    return next ok(i.explanation like says, 'and why: ' || i.explanation);
end
$$;
select pg_temp.why(2, 'has fired', 'one that has fired');
select pg_temp.schedule(4, 'tap external', '2090-01-01 00:00+00') \g /dev/null
select pg_temp.why(4, '%claim_due()%', 'one that workers claim');
select timers.claim_due('tap external', as_of => '2095-01-01 00:00+00') \g /dev/null
select pg_temp.why(4, 'is being fired%', 'one that is being fired');
select timers.cancel(pg_temp.id(4)) \g /dev/null
select pg_temp.why(4, '%cancelled', 'one that was cancelled');
select timers.dead_letter(pg_temp.id(3), 'broken') \g /dev/null
select pg_temp.why(3, 'is dead%retry_dead()%claim_dead()%', 'one that is dead');
select timers.claim_dead(pg_temp.id(3), claimed_by => 'ada') \g /dev/null
select pg_temp.why(3, 'is being resumed%', 'one that is being resumed');
select timers.pause('tap inspect') \g /dev/null
select pg_temp.why(1, '%paused%unpause()%', 'one whose process manager is paused');
select timers.unpause('tap inspect') \g /dev/null
select timers.configure('tap inspect', max_attempts => 2) \g /dev/null
update timers.timer set attempts = 2 where timer_id = pg_temp.id(1);
select pg_temp.why(1, '%max_attempts%', 'one that has no attempt left');
select is((pg_temp.seen(1)).attempts_left, 0, 'which is told');
update timers.timer set attempts = 3 where timer_id = pg_temp.id(1);
select is((pg_temp.seen(1)).attempts_left, 0, 'less than none is none');
update timers.timer set forgiven = 2 where timer_id = pg_temp.id(1);
select is((pg_temp.seen(1)).attempts_left, 1, 'forgiven ones do not count');
select is((pg_temp.seen(1)).next_due, timestamptz '2090-01-01 00:00+00', 'and so it fires');

-- Under which settings: the process manager's, else the server's.
create function pg_temp.settings(number integer) returns jsonb
language sql volatile as $$
    select jsonb_build_object('delivery', i.delivery, 'paused', i.paused, 'channel', i.channel, 'handler', i.handler,
        'run_as', i.run_as, 'max_attempts', i.max_attempts, 'lease', i.lease, 'retry_delay', i.retry_delay,
        'retry_factor', i.retry_factor, 'retry_ceiling', i.retry_ceiling, 'max_concurrent', i.max_concurrent,
        'handler_timeout', i.handler_timeout, 'retention', i.retention)
    from timers.inspect(pg_temp.id(number)) i
$$;
select pg_temp.schedule(5, 'tap defaults', '2090-01-01 00:00+00') \g /dev/null
delete from timers.process_manager where process_manager = 'tap defaults';
select is(pg_temp.settings(5), jsonb_build_object('delivery', 'outbox', 'paused', false, 'channel', null,
    'handler', null, 'run_as', null, 'max_attempts', null, 'lease', current_setting('durable_timers.lease')::interval,
    'retry_delay', current_setting('durable_timers.retry_delay')::interval,
    'retry_factor', current_setting('durable_timers.retry_factor')::float8,
    'retry_ceiling', current_setting('durable_timers.retry_ceiling')::interval, 'max_concurrent', null,
    'handler_timeout', current_setting('durable_timers.handler_timeout')::interval,
    'retention', (extract(epoch from current_setting('durable_timers.retention')::interval) * interval '1 second')),
    'the server''s, where there is not even a row');
create function pg_temp.handle(t timers.timer) returns uuid language sql as $$ select gen_random_uuid() $$;
select timers.configure('tap set', 'handler', 'bell', format('%s.handle', (select nspname from pg_namespace
        where oid = pg_my_temp_schema())), session_user::regrole, 7, '11 minutes', '2 seconds', 3, '4 hours', 5,
    '6 seconds', '8 days') \g /dev/null
select pg_temp.schedule(6, 'tap set', '2090-01-01 00:00+00') \g /dev/null
select is(pg_temp.settings(6), jsonb_build_object('delivery', 'handler', 'paused', false, 'channel', 'bell',
    'handler', (select handler from timers.process_manager where process_manager = 'tap set'),
    'run_as', session_user, 'max_attempts', 7, 'lease', interval '11 minutes', 'retry_delay', interval '2 seconds',
    'retry_factor', 3, 'retry_ceiling', interval '4 hours', 'max_concurrent', 5,
    'handler_timeout', interval '6 seconds', 'retention', interval '8 days'), 'or its own');
select is((pg_temp.seen(6)).attempts_left, 7, 'with all its attempts');
select is((pg_temp.seen(5)).attempts_left, null, 'or any number of them');

-- Who holds it: all but the token.
select pg_temp.schedule(7, 'tap held', '2010-01-01 00:00+00') \g /dev/null
select is((pg_temp.seen(7)).claim_kind, null, 'nobody');
select timers.configure('tap held', 'external') \g /dev/null
select claim_token from timers.claim_due('tap held', 1, '20 minutes') \gset
select results_eq('select i.claim_kind, i.claimed_by, i.claimed_at, i.lease_until from timers.inspect(pg_temp.id(7)) i',
    $$ select c.kind collate "default", c.claimed_by collate "default", c.claimed_at, c.lease_until
       from timers.claim c where c.timer_id = pg_temp.id(7) $$, 'a worker');
select is(position(:'claim_token' in pg_temp.seen(7)::text), 0, 'whose token is not told');
select is((pg_temp.seen(3)).claimed_by, 'ada', 'somebody who resumes it');
select is(position((select token::text from timers.claim where timer_id = pg_temp.id(3)) in pg_temp.seen(3)::text), 0,
    'whose token is not told either');
select is((pg_temp.seen(7)).cursor, null, 'a single timer has no cursor');

-- With EXECUTE alone, and no sight of the tables.
create role tap_reader;
grant usage on schema timers to tap_reader;
grant execute on function timers.inspect(uuid) to tap_reader;
set local role tap_reader;
select is((select correlation_id from timers.inspect('00000000-0000-4000-b007-000000000007')), 'saga 7',
    'who may inspect sees it');
select throws_ok('select count(*) from timers.claim', '42501', null, 'but no claims');
select throws_ok('select timers.claim_dead(''00000000-0000-4000-b007-000000000003'')', '42501', null,
    'and may not resume');
reset role;

select is(timers.pending_statuses(), '{scheduled,firing}'::timers.timer_status[], 'two states are pending');

select * from finish();
rollback;

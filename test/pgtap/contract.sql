-- Intent: the functions and types that other people's scripts call are there, with these arguments, results, volatility
-- and strictness.
begin;
select plan(103);

select has_extension('durable_timers');
select has_schema('timers');

select enum_has_labels('timers', 'timer_status', array[
    'scheduled', 'firing', 'fired', 'cancelled', 'dead', 'resuming'], 'states');
select enum_has_labels('timers', 'schedule_outcome', array['inserted', 'rearmed', 'kept', 'too_late'], 'outcomes');
select enum_has_labels('timers', 'rearm_mode', array['replace', 'later', 'earlier', 'keep'], 'modes');
select enum_has_labels('timers', 'delivery', array['outbox', 'notify', 'handler', 'external'], 'deliveries');

-- Every function: there, with its result, volatile or not; null arguments reach it and are refused by name.
create temporary table wanted (name name, arguments name[], result text, volatility text, strict boolean);
insert into wanted (name, arguments, result, volatility, strict) values
    ('schedule', '{uuid,text,text,timestamp with time zone,jsonb,timers.rearm_mode}', 'timers.schedule_outcome',
        'volatile', false),
    ('schedule_in', '{uuid,text,text,interval,jsonb,timers.rearm_mode}', 'timers.schedule_outcome', 'volatile', false),
    ('schedule_once', '{uuid,text,text,timestamp with time zone,jsonb}', 'boolean', 'volatile', false),
    ('timer_id', '{uuid,text}', 'uuid', 'immutable', true),
    ('cancel', '{uuid}', 'boolean', 'volatile', false),
    ('cancel_correlation', '{text,text}', 'bigint', 'volatile', false),
    ('claim_due', '{text,integer,interval,timestamp with time zone}', 'setof timers.claimed_timer', 'volatile', false),
    ('renew', '{uuid,uuid,interval}', 'timestamp with time zone', 'volatile', false),
    ('mark_fired', '{uuid,uuid,uuid}', 'boolean', 'volatile', false),
    ('release', '{uuid,uuid,timestamp with time zone,text}', 'boolean', 'volatile', false),
    ('fire_due', '{timestamp with time zone,integer}', 'integer', 'volatile', false),
    ('lookup', '{uuid}', 'setof timers.timer', 'stable', false),
    ('requeue_stuck', '{interval,timestamp with time zone}', 'bigint', 'volatile', false),
    ('take_events', '{integer,text}', 'setof timers.outbox', 'volatile', false),
    ('pause', '{text}', 'boolean', 'volatile', false),
    ('unpause', '{text}', 'boolean', 'volatile', false);
select has_function('timers', w.name, w.arguments) from wanted w;
select function_returns('timers', w.name, w.arguments, w.result) from wanted w;
select volatility_is('timers', w.name, w.arguments, w.volatility) from wanted w;
select case when w.strict then is_strict('timers', w.name, w.arguments)
            else isnt_strict('timers', w.name, w.arguments) end
from wanted w;

select has_function('timers', 'configure', array[
    'text', 'timers.delivery', 'text', 'text', 'regrole', 'integer', 'interval', 'interval', 'double precision',
    'interval', 'integer', 'interval', 'interval']);
select function_returns('timers', 'configure', array[
    'text', 'timers.delivery', 'text', 'text', 'regrole', 'integer', 'interval', 'interval', 'double precision',
    'interval', 'integer', 'interval', 'interval'], 'void');

-- Called by name, in any order, with what has a default left out.
select lives_ok(
    $$ select timers.configure(lease => '1 minute', delivery => 'external', process_manager => 'tap contract') $$,
    'configure by name');
select is(timers.schedule(process_manager => 'tap contract', fire_at => '2090-01-01 00:00+00', correlation_id => 'saga',
                          timer_id => '00000000-0000-4000-a000-000000000001'), 'inserted', 'schedule by name');
select is(timers.schedule_in(delay => '1 hour', mode => 'earlier', payload => '{}', correlation_id => 'saga',
                             process_manager => 'tap contract', timer_id => '00000000-0000-4000-a000-000000000001'),
    'rearmed', 'schedule_in by name');
select is(timers.schedule_once(payload => '{}', process_manager => 'tap contract', fire_at => '2090-01-01 00:00+00',
                               correlation_id => 'saga', timer_id => '00000000-0000-4000-a000-000000000001'),
    false, 'schedule_once by name');
select is(timers.timer_id(name => 'idle:session-17', namespace => '0190a3f2-5c1e-7b44-9a6f-3d2e1c0b9a87'),
    'a37fd740-c1ef-5d40-ad3c-ca34045518a8', 'timer_id by name');
select is((select count(*) from timers.claim_due(as_of => '2091-01-01 00:00+00', lease => '1 minute', max_timers => 1,
                                                 process_manager => 'tap contract')), 1::bigint, 'claim_due by name');
select lives_ok($$ select timers.renew(lease => '2 minutes', claim_token => token, timer_id => timer_id)
    from timers.claim $$,
    'renew by name');
select lives_ok(
    $$ select timers.release(error => 'e', fire_at => '2090-01-01 00:00+00', claim_token => token, timer_id => timer_id)
       from timers.claim $$, 'release by name');
select is(timers.requeue_stuck(as_of => '2091-01-01 00:00+00', older_than => '1 minute'), 0::bigint,
    'requeue_stuck by name');
select is(timers.mark_fired(claim_token => null, event_id => '00000000-0000-4000-a000-000000000002',
                            timer_id => '00000000-0000-4000-a000-000000000001'), false, 'mark_fired by name');
select is(timers.fire_due(max_timers => 1, as_of => '2089-01-01 00:00+00'), 0, 'fire_due by name');
select is((select count(*) from timers.take_events(process_manager => 'tap contract', max_events => 1)), 0::bigint,
    'take_events by name');
select is(timers.cancel(timer_id => '00000000-0000-4000-a000-000000000001'), true, 'cancel by name');
select is(timers.cancel_correlation(correlation_id => 'saga', process_manager => 'tap contract'), 0::bigint,
    'cancel_correlation by name');
select is(timers.pause(process_manager => 'tap contract'), true, 'pause by name');
select is(timers.unpause(process_manager => 'tap contract'), true, 'unpause by name');

-- Rows that clients read.
select has_table('timers', 'timer', 'the timers');
select has_pk('timers', 'timer', 'an id is one timer');
select col_type_is('timers', 'timer', 'timer_id', 'uuid', 'timer.timer_id');
select col_type_is('timers', 'timer', 'fire_at', 'timestamp with time zone', 'timer.fire_at');
select col_type_is('timers', 'timer', 'payload', 'jsonb', 'timer.payload');
select has_table('timers', 'outbox', 'the outbox');
select has_pk('timers', 'outbox', 'a position is one event');
select col_type_is('timers', 'outbox', 'position', 'bigint', 'outbox.position');
select col_type_is('timers', 'outbox', 'event_id', 'uuid', 'outbox.event_id');
select col_type_is('timers', 'outbox', 'payload', 'jsonb', 'outbox.payload');
select has_composite('timers', 'claimed_timer', 'what a claim returns');
select has_composite('timers', 'timer_request', 'a request');

-- The view of the workers answers, and says why nothing fires where nothing does.
select has_view('timers', 'workers', 'the workers');
select is((select array_agg(w.worker) @> array['dispatcher'] from timers.workers w), true,
    'the dispatcher has its row');
select is_empty($$ select w.worker, w.state from timers.workers w where w.state is null $$, 'every worker has a state');

select * from finish();
rollback;

-- Intent: every bad argument of every function is refused with its SQLSTATE and its name, and nothing has been changed.
set timezone = 'UTC';

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-8002-' || lpad(number::text, 12, '0'))::uuid $$;

-- What a call raises.
create function pg_temp.raised(call text) returns text
language plpgsql as $$
declare
    detail text;
    hint text;
begin
    execute 'select ' || call;
    return 'no error';
exception when others then
    get stacked diagnostics detail = pg_exception_detail, hint = pg_exception_hint;
    return concat_ws(E'\n    ', sqlstate || ' ' || sqlerrm, nullif(detail, ''), nullif(hint, ''));
end
$$;

select timers.configure('regress input', 'external');
select timers.schedule(pg_temp.id(1), 'regress input', 'saga', '2090-01-01 00:00+00');
select timers.schedule(pg_temp.id(2), 'regress input', 'saga', '2090-01-01 00:00+00');
update timers.timer set status = 'resuming' where timer_id = pg_temp.id(2);
select timers.schedule(pg_temp.id(3), 'regress input', 'saga', '2090-01-01 00:00+00');
select timers.dead_letter(pg_temp.id(3), 'broken');
create temporary table before as
select t::text as row from timers.timer t union all select c::text from timers.claim c
union all select o::text from timers.outbox o union all select p::text from timers.process_manager p;

create temporary table call (place serial, text text);
-- Names in calls: $id is a scheduled timer, $dead and $resuming are what they say, $none is no timer.
insert into call (text) values
    ('timers.schedule(null, ''regress x'', ''saga'', ''2090-01-01'')'),
    ('timers.schedule($id, null, ''saga'', ''2090-01-01'')'),
    ('timers.schedule($id, '''', ''saga'', ''2090-01-01'')'),
    ('timers.schedule($id, repeat(''n'', 256), ''saga'', ''2090-01-01'')'),
    ('timers.schedule($id, ''regress x'', null, ''2090-01-01'')'),
    ('timers.schedule($id, ''regress x'', '''', ''2090-01-01'')'),
    ('timers.schedule($id, ''regress x'', ''saga'', null)'),
    ('timers.schedule($id, ''regress x'', ''saga'', ''infinity'')'),
    ('timers.schedule($id, ''regress x'', ''saga'', ''-infinity'')'),
    ('timers.schedule($id, ''regress x'', ''saga'', ''2090-01-01'', null)'),
    ('timers.schedule($id, ''regress x'', ''saga'', ''2090-01-01'', mode => null)'),
    ('timers.schedule_in(null, ''regress x'', ''saga'', ''1 day'')'),
    ('timers.schedule_in($id, null, ''saga'', ''1 day'')'),
    ('timers.schedule_in($id, '''', ''saga'', ''1 day'')'),
    ('timers.schedule_in($id, repeat(''n'', 256), ''saga'', ''1 day'')'),
    ('timers.schedule_in($id, ''regress x'', null, ''1 day'')'),
    ('timers.schedule_in($id, ''regress x'', '''', ''1 day'')'),
    ('timers.schedule_in($id, ''regress x'', ''saga'', null)'),
    ('timers.schedule_in($id, ''regress x'', ''saga'', ''300000 years'')'),
    ('timers.schedule_in($id, ''regress x'', ''saga'', ''-300000 years'')'),
    ('timers.schedule_in($id, ''regress x'', ''saga'', ''1 day'', null)'),
    ('timers.schedule_in($id, ''regress x'', ''saga'', ''1 day'', mode => null)'),
    ('timers.schedule_once(null, ''regress x'', ''saga'', ''2090-01-01'')'),
    ('timers.schedule_once($id, null, ''saga'', ''2090-01-01'')'),
    ('timers.schedule_once($id, '''', ''saga'', ''2090-01-01'')'),
    ('timers.schedule_once($id, repeat(''n'', 256), ''saga'', ''2090-01-01'')'),
    ('timers.schedule_once($id, ''regress x'', null, ''2090-01-01'')'),
    ('timers.schedule_once($id, ''regress x'', '''', ''2090-01-01'')'),
    ('timers.schedule_once($id, ''regress x'', ''saga'', null)'),
    ('timers.schedule_once($id, ''regress x'', ''saga'', ''infinity'')'),
    ('timers.schedule_once($id, ''regress x'', ''saga'', ''-infinity'')'),
    ('timers.schedule_once($id, ''regress x'', ''saga'', ''2090-01-01'', null)'),
    ('timers.cancel(null)'),
    ('timers.cancel($resuming)'),
    ('timers.cancel_correlation(null, ''saga'')'),
    ('timers.cancel_correlation('''', ''saga'')'),
    ('timers.cancel_correlation(repeat(''n'', 256), ''saga'')'),
    ('timers.cancel_correlation(''regress x'', null)'),
    ('timers.cancel_correlation(''regress x'', '''')'),
    ('timers.fire_due(null)'),
    ('timers.fire_due(''infinity'')'),
    ('timers.fire_due(''-infinity'')'),
    ('timers.fire_due(max_timers => null)'),
    ('timers.fire_due(max_timers => 0)'),
    ('timers.fire_due(max_timers => -1)'),
    ('timers.claim_due('''')'),
    ('timers.claim_due(repeat(''n'', 256))'),
    ('timers.claim_due(''regress x'', null)'),
    ('timers.claim_due(''regress x'', 0)'),
    ('timers.claim_due(''regress x'', -1)'),
    ('timers.claim_due(''regress x'', lease => ''0'')'),
    ('timers.claim_due(''regress x'', lease => ''-1 second'')'),
    ('timers.claim_due(''regress x'', as_of => null)'),
    ('timers.claim_due(''regress x'', as_of => ''infinity'')'),
    ('timers.claim_due(''regress x'', as_of => ''-infinity'')'),
    ('timers.renew(null, $none)'),
    ('timers.renew($id, null)'),
    ('timers.renew($id, $none, ''0'')'),
    ('timers.renew($id, $none, ''-1 second'')'),
    ('timers.renew($none, $none)'),
    ('timers.renew($id, $none)'),
    ('timers.mark_fired(null, $none)'),
    ('timers.mark_fired($id, null)'),
    ('timers.mark_fired($id, null, $none)'),
    ('timers.mark_fired($none, $none, $none)'),
    ('timers.mark_fired($id, $none, $none)'),
    ('timers.mark_fired($resuming, $none)'),
    ('timers.release(null, $none)'),
    ('timers.release($id, null)'),
    ('timers.release($id, $none, null)'),
    ('timers.release($id, $none, ''infinity'')'),
    ('timers.release($id, $none, ''-infinity'')'),
    ('timers.release($none, $none)'),
    ('timers.release($id, $none)'),
    ('timers.claim_dead(null)'),
    ('timers.claim_dead($id, null)'),
    ('timers.claim_dead($id, ''0'')'),
    ('timers.claim_dead($id, expected_process_manager => '''')'),
    ('timers.claim_dead($id, expected_attempts => -1)'),
    ('timers.claim_dead($id, claimed_by => '''')'),
    ('timers.claim_dead($none)'),
    ('timers.claim_dead($id)'),
    ('timers.claim_dead($dead, expected_process_manager => ''regress x'')'),
    ('timers.claim_dead($dead, expected_attempts => 3)'),
    ('timers.renew_resume($resuming, $none, ''0'')'),
    ('timers.renew_resume($none, $none, ''1 hour'')'),
    ('timers.renew_resume($resuming, $none, ''1 hour'')'),
    ('timers.complete_resume($resuming, $none, null)'),
    ('timers.complete_resume($id, $none, $none)'),
    ('timers.park_resume($resuming, $none, '''')'),
    ('timers.park_resume($dead, $none)'),
    ('timers.cancel_resume($resuming, null)'),
    ('timers.cancel_resume($resuming, $none)'),
    ('timers.recover_expired_resumes(null)'),
    ('timers.recover_expired_resumes(''infinity'')'),
    ('timers.release($resuming, $none)'),
    ('timers.inspect(null)'),
    ('timers.find_pending('''')'),
    ('timers.find_pending(status => ''dead'')'),
    ('timers.find_pending(due_before => ''infinity'')'),
    ('timers.find_pending(page_size => 0)'),
    ('timers.find_pending(page_size => 1001)'),
    ('timers.find_pending(cursor => ''page 2'')'),
    ('timers.find_pending(cursor => ''timer-dead.'')'),
    ('timers.find_pending(cursor => ''timer-pending.AA'')'),
    ('timers.find_dead(reason => ''x'', reason_match => ''like'')'),
    ('timers.find_dead(reason => ''x'', reason_match => ''none'')'),
    ('timers.find_dead(reason_match => ''prefix'')'),
    ('timers.find_dead(died_after => ''-infinity'')'),
    ('timers.find_dead(page_size => null)'),
    ('timers.find_dead(cursor => ''timer-pending.'')'),
    ('timers.pending_page(page_size => 1001)'),
    ('timers.dead_page(cursor => ''page 2'')'),
    ('timers.requeue_stuck(''-1 second'')'),
    ('timers.requeue_stuck(as_of => null)'),
    ('timers.requeue_stuck(as_of => ''infinity'')'),
    ('timers.requeue_stuck(as_of => ''-infinity'')'),
    ('timers.take_events(null)'),
    ('timers.take_events(0)'),
    ('timers.take_events(-1)'),
    ('timers.take_events(1, '''')'),
    ('timers.configure(null)'),
    ('timers.configure('''')'),
    ('timers.configure(repeat(''n'', 256))'),
    ('timers.configure(''regress x'', channel => '''')'),
    ('timers.configure(''regress x'', channel => repeat(''c'', 64))'),
    ('timers.configure(''regress x'', ''notify'')'),
    ('timers.configure(''regress x'', max_attempts => -1)'),
    ('timers.configure(''regress x'', lease => ''0'')'),
    ('timers.configure(''regress x'', lease => ''-1 minute'')'),
    ('timers.pause(null)'),
    ('timers.pause('''')'),
    ('timers.pause(repeat(''n'', 256))'),
    ('timers.unpause(null)'),
    ('timers.unpause('''')'),
    ('timers.unpause(repeat(''n'', 256))');

select c.text as call,
       pg_temp.raised(replace(replace(replace(replace(c.text, '$id', quote_literal(pg_temp.id(1)) || '::uuid'),
           '$none', quote_literal(pg_temp.id(999)) || '::uuid'),
           '$resuming', quote_literal(pg_temp.id(2)) || '::uuid'),
           '$dead', quote_literal(pg_temp.id(3)) || '::uuid')) as raised
from call c order by c.place;

-- Nothing was changed, no settings were made.
create temporary table after as
select t::text as row from timers.timer t union all select c::text from timers.claim c
union all select o::text from timers.outbox o union all select p::text from timers.process_manager p;
(table before except all table after) union all (table after except all table before);

-- What is strict answers null.
select timers.timer_id(null, 'name') is null as no_namespace, timers.timer_id(pg_temp.id(1), null) is null as no_name;

-- A few as a client sees them, with everything that is sent along.
\set VERBOSITY default
select timers.schedule(pg_temp.id(1), '', 'saga', '2090-01-01 00:00+00');
\echo :SQLSTATE
select timers.mark_fired(pg_temp.id(1), pg_temp.id(1), pg_temp.id(1));
\echo :SQLSTATE
select timers.cancel(pg_temp.id(2));
\echo :SQLSTATE
select timers.claim_dead(pg_temp.id(3), expected_attempts => 1);
\echo :SQLSTATE
select timers.find_dead(cursor => 'page 2');
\echo :SQLSTATE
-- A trigger function is no function to be called.
select timers._on_timer();
\echo :SQLSTATE

delete from timers.timer;
delete from timers.process_manager;

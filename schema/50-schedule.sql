-- Scheduling, in the caller's transaction.

create function timers.schedule(
    timer_id uuid, process_manager text, correlation_id text, fire_at timestamptz,
    payload jsonb default '{}', mode timers.rearm_mode default 'replace')
returns timers.schedule_outcome
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_schedule';
comment on function timers.schedule(uuid, text, text, timestamptz, jsonb, timers.rearm_mode) is
'Schedules a timer for the instant fire_at, or moves the scheduled timer of that id as mode says. A time in the past is due at once. Never changes a timer that is no longer scheduled. Returns the outcome. Errors: 22004 for a null argument, 22023 for an empty name, a process_manager over 255 bytes or an infinite fire_at.';

create function timers.schedule_in(
    timer_id uuid, process_manager text, correlation_id text, delay interval,
    payload jsonb default '{}', mode timers.rearm_mode default 'replace')
returns timers.schedule_outcome
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_schedule_in';
comment on function timers.schedule_in(uuid, text, text, interval, jsonb, timers.rearm_mode) is
'As timers.schedule(), with fire_at = the clock at the call + delay. Pushed further with every event it debounces.';

create function timers.schedule_once(
    timer_id uuid, process_manager text, correlation_id text, fire_at timestamptz, payload jsonb default '{}')
returns boolean
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_schedule_once';
comment on function timers.schedule_once(uuid, text, text, timestamptz, jsonb) is
'Schedules a timer unless one of that id exists, in whatever state. True when it did. Errors as timers.schedule().';

create function timers.schedule_many(
    requests timers.timer_request[], mode timers.rearm_mode default 'replace',
    out timer_id uuid, out outcome timers.schedule_outcome)
returns setof record
language c volatile parallel unsafe rows 100 as 'MODULE_PATHNAME', 'timers_schedule_many';
comment on function timers.schedule_many(timers.timer_request[], timers.rearm_mode) is
'Schedules many timers at once; two such calls cannot deadlock, whatever the order of their requests. Of several requests with the same id the last counts. Returns one row per request, in their order. Errors: 22004 for a null in a request; otherwise as timers.schedule(). Nothing is scheduled then.';

create function timers.debounce(
    timer_id uuid, process_manager text, correlation_id text, quiet interval,
    payload jsonb default '{}', max_wait interval default null)
returns timers.schedule_outcome
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_debounce';
comment on function timers.debounce(uuid, text, text, interval, jsonb, interval) is
'Schedules a timer for the clock at the call + quiet, or postpones the scheduled timer of that id to there, but never beyond max_wait after it was first scheduled (null: no bound). Returns the outcome. Errors: 22004; 22023 for an empty name, a negative quiet or a max_wait that is not longer than zero.';

create function timers.cancel(timer_id uuid) returns boolean
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_cancel';
comment on function timers.cancel(uuid) is
'Cancels a timer that is scheduled or firing; a claim on it no longer holds. True when it did, false when there was nothing to cancel. Errors: 22004; TM002 when a guarded claim holds the timer.';

create function timers.cancel_correlation(process_manager text, correlation_id text) returns bigint
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_cancel_correlation';
comment on function timers.cancel_correlation(text, text) is
'Cancels every timer of the process manager and the correlation id that is scheduled or firing. Returns how many. Errors: 22004, 22023.';

create function timers.lookup(timer_id uuid) returns setof timers.timer
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp
begin atomic
    select t.timer_id, t.created_at, t.wake_at, t.fire_at, t.updated_at, t.attempts, t.forgiven, t.status,
           t.fired_event_id, t.process_manager, t.correlation_id, t.payload, t.died_at, t.last_error
    from timers.timer t where t.timer_id = lookup.timer_id;
end;
comment on function timers.lookup(uuid) is 'The timer of that id: one row, or none.';

-- Firing: a pass in the caller's session, and claims for workers of one's own.

create function timers.fire_due(as_of timestamptz default pg_catalog.clock_timestamp(), max_timers integer default 1000) returns integer
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_fire_due';
comment on function timers.fire_due(timestamptz, integer) is
'Runs a pass of the dispatcher in this session and transaction: ends resumes and requeues claims that have lapsed at as_of, then fires up to max_timers outbox and notify timers with fire_at <= as_of, those of this transaction included. Returns how many it fired. For tests, and for servers that do not preload the library. Errors: 22004, 22023.';

create function timers.claim_due(
    process_manager text default null, max_timers integer default 1, lease interval default null,
    as_of timestamptz default pg_catalog.clock_timestamp())
returns setof timers.claimed_timer
language c volatile parallel unsafe rows 10 as 'MODULE_PATHNAME', 'timers_claim_due';
comment on function timers.claim_due(text, integer, interval, timestamptz) is
'Claims up to max_timers timers with fire_at <= as_of of one process manager (null: of all), earliest first, skipping what others hold. Each becomes firing, counts an attempt and carries a claim_token that holds for lease (null: as the process manager is set). A timer whose attempt would exceed max_attempts becomes dead instead. Errors: 22004, 22023.';

create function timers.renew(timer_id uuid, claim_token uuid, lease interval default null) returns timestamptz
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_renew';
comment on function timers.renew(uuid, uuid, interval) is
'Extends the claim to lease from now (null: as the process manager is set). Returns the new lease_until. Errors: 22004, 22023; TM001 no such timer; TM003 the claim no longer holds.';

create function timers.mark_fired(timer_id uuid, event_id uuid, claim_token uuid default null) returns boolean
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_mark_fired';
comment on function timers.mark_fired(uuid, uuid, uuid) is
'Completes a firing in the caller''s transaction, with the id of the event that it produced. With claim_token: true, or the errors TM001 no such timer and TM003 the claim no longer holds, which undo the caller''s work. Without: true when the timer was firing, false otherwise; TM002 when a guarded claim holds it. Errors: 22004.';

create function timers.release(
    timer_id uuid, claim_token uuid, fire_at timestamptz default pg_catalog.clock_timestamp(), error text default null)
returns boolean
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_release';
comment on function timers.release(uuid, uuid, timestamptz, text) is
'Gives a claimed timer back, to fire again at fire_at, with error as its last_error unless null. The attempt stays counted. Returns true. Errors: 22004, 22023; TM001 no such timer; TM003 the claim no longer holds.';

create function timers.requeue_stuck(older_than interval default null, as_of timestamptz default pg_catalog.clock_timestamp()) returns bigint
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_requeue_stuck';
comment on function timers.requeue_stuck(interval, timestamptz) is
'Makes firing timers scheduled again whose lease has ended at as_of or, with older_than, whose claim is at least that old. fire_at stays, so they are due at once. Returns how many. The dispatcher does this by itself. Errors: 22023.';

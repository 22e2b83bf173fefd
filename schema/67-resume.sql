-- Guarded resume: whoever deals with a dead timer by hand claims it first. Timer id and claim token together are his
-- handle: what presents them raises TM001 for no such timer and TM003 when the claim no longer holds.

create function timers.claim_dead(
    timer_id uuid, lease interval default '5 minutes', expected_process_manager text default null,
    expected_attempts integer default null, claimed_by text default session_user)
returns timers.claimed_timer
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_claim_dead';
comment on function timers.claim_dead(uuid, interval, text, integer, text) is
'Claims a dead timer for lease: it is resuming, and only who presents the returned claim_token moves it, until he completes, parks or cancels the resume or the lease ends; then it is dead again, as it was. Of many who try at a time one wins. Counts no attempt. With expected_process_manager and expected_attempts, only if the timer still has these. claimed_by: who claims, for others to read. Errors: 22004; 22023 for a lease that is not longer than zero, an empty name, expected_attempts below zero; TM001 no such timer; TM002 not dead; TM004 held by another; TM005 expectation not met.';

create function timers.renew_resume(timer_id uuid, claim_token uuid, lease interval) returns timestamptz
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_renew_resume';
comment on function timers.renew_resume(uuid, uuid, interval) is
'Extends a resume that holds to lease from now. Returns the new lease_until. Errors: 22004; 22023 for a lease that is not longer than zero; TM001 no such timer; TM003 the claim no longer holds.';

create function timers.complete_resume(timer_id uuid, claim_token uuid, event_id uuid) returns void
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_complete_resume';
comment on function timers.complete_resume(uuid, uuid, uuid) is
'Completes a resume in the caller''s transaction: the timer is fired, with event_id as the id of what was produced. Errors, which undo the caller''s work: 22004; TM001 no such timer; TM003 the claim no longer holds.';

create function timers.park_resume(timer_id uuid, claim_token uuid, reason text default null) returns void
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_park_resume';
comment on function timers.park_resume(uuid, uuid, text) is
'Gives a resume up: the timer is dead again, since when it died, with reason as its last_error unless null. Errors: 22004; 22023 for an empty reason; TM001 no such timer; TM003 the claim no longer holds.';

create function timers.cancel_resume(timer_id uuid, claim_token uuid) returns void
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_cancel_resume';
comment on function timers.cancel_resume(uuid, uuid) is
'Cancels the timer of a resume for good. Errors: 22004; TM001 no such timer; TM003 the claim no longer holds.';

create function timers.recover_expired_resumes(as_of timestamptz default pg_catalog.clock_timestamp()) returns bigint
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_recover_expired_resumes';
comment on function timers.recover_expired_resumes(timestamptz) is
'Makes timers dead again whose resume''s lease has ended at as_of, as they were. Returns how many. The dispatcher does this by itself the moment a lease ends, and so does fire_due(). Errors: 22004, 22023.';

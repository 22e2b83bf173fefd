-- The schema and the words of the product as types. Nothing here is replaced: a schema "timers" that
-- somebody else made, or a type of theirs, makes CREATE EXTENSION fail.

create schema timers;
comment on schema timers is 'durable timers: schedule, fire, inspect and resume';
revoke all on schema timers from public;

create type timers.timer_status as enum ('scheduled', 'firing', 'fired', 'cancelled', 'dead', 'resuming');
comment on type timers.timer_status is
'scheduled: waits for fire_at. firing: claimed by a worker. fired, cancelled: final. dead: given up on, kept with its reason. resuming: a dead timer under a guarded claim.';

create type timers.schedule_outcome as enum ('inserted', 'rearmed', 'kept', 'too_late');
comment on type timers.schedule_outcome is
'inserted: a new timer. rearmed: the scheduled timer was moved. kept: the scheduled timer stays as it was. too_late: the timer is no longer scheduled, nothing was changed.';

create type timers.rearm_mode as enum ('replace', 'later', 'earlier', 'keep');
comment on type timers.rearm_mode is
'What scheduling does to a timer that is scheduled already. replace: takes the new request. later: only if that postpones it. earlier: only if that advances it. keep: never.';

create type timers.delivery as enum ('outbox', 'notify', 'handler', 'external');
comment on type timers.delivery is
'How a timer leaves the database. outbox: a row in timers.outbox, exactly once. notify: a NOTIFY that the listener acknowledges. handler: a SQL function. external: application workers claim it.';

create type timers.timer_request as (
    timer_id        uuid,
    process_manager text,
    correlation_id  text,
    fire_at         timestamptz,
    payload         jsonb
);
comment on type timers.timer_request is 'One timer to be scheduled.';

create type timers.claimed_timer as (
    timer_id        uuid,
    process_manager text,
    correlation_id  text,
    fire_at         timestamptz,
    payload         jsonb,
    attempts        integer,
    last_error      text,
    claim_token     uuid,
    lease_until     timestamptz
);
comment on type timers.claimed_timer is
'A timer together with the claim on it: claim_token proves the claim until lease_until.';

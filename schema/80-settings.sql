-- Settings of process managers.

create function timers.configure(
    process_manager text, delivery timers.delivery default null, channel text default null,
    handler text default null, run_as regrole default null, max_attempts integer default null,
    lease interval default null, retry_delay interval default null, retry_factor double precision default null,
    retry_ceiling interval default null, max_concurrent integer default null,
    handler_timeout interval default null, retention interval default null)
returns void
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_configure';
comment on function timers.configure(text, timers.delivery, text, text, regrole, integer, interval, interval, double precision, interval, integer, interval, interval) is
'Sets how timers of a process manager are delivered; null leaves a setting as it is. delivery: outbox (default), notify, handler or external. channel: the NOTIFY channel, at most 63 bytes; needed by notify, a doorbell for outbox. handler: a function as schema.name that takes a timers.timer and returns uuid; needed by handler, with the caller''s EXECUTE. run_as: the role that it runs as, of which the caller must be a member (default: the caller). max_attempts: from 0 up, then dead. lease, handler_timeout: longer than zero. retry_delay, retry_ceiling, retention (how long fired and cancelled timers are kept): from zero up; retry_factor: 1 to 1000. max_concurrent: from 1 up. Holds from the commit on. Errors: 22004; 22023 with the argument''s name; 42883 no such handler; 42501 may not use it or the role.';

create function timers.pause(process_manager text) returns boolean
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_pause';
comment on function timers.pause(text) is
'Stops the firing of a process manager''s timers from the commit on; they stay due. True when it was not paused before. Errors: 22004, 22023.';

create function timers.unpause(process_manager text) returns boolean
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_unpause';
comment on function timers.unpause(text) is
'Lets a paused process manager''s timers fire again; what is overdue fires at once. True when it was paused. Errors: 22004, 22023.';

create function timers._identity() returns text
language c stable parallel safe as 'MODULE_PATHNAME', 'timers_identity';
comment on function timers._identity() is 'What tells this database from its copies: system identifier and database oid.';

insert into timers.armed (identity) values (timers._identity());

create function timers.arm() returns void
language sql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
begin atomic
    insert into timers.armed as a (identity) values (timers._identity())
    on conflict (only_row) do update
    set identity = excluded.identity, restored_at = null, armed_at = excluded.armed_at, armed_by = excluded.armed_by;
end;
comment on function timers.arm() is
'Lets this database fire its timers by itself, from the commit on; what is overdue fires at once. Needed after a restore, a clone of a template and an upgrade, which are told apart so that the timers of a copy reach nobody by accident. A promoted standby needs none.';

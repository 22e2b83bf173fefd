-- Recovery, by id: true when the timer was changed, false when there was nothing to change.

create function timers.requeue(timer_id uuid) returns boolean
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_requeue';
comment on function timers.requeue(uuid) is
'Makes a firing timer scheduled again, whatever its lease; the claim on it no longer holds. fire_at stays. True when it did. Errors: 22004; TM002 when a guarded claim holds the timer.';

create function timers.dead_letter(timer_id uuid, reason text) returns boolean
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_dead_letter';
comment on function timers.dead_letter(uuid, text) is
'Gives up on a timer that is scheduled or firing: it becomes dead, with reason as its last_error, and waits for retry_dead(). True when it did. Errors: 22004; 22023 for an empty reason; TM002 when a guarded claim holds the timer.';

create function timers.retry_dead(timer_id uuid, fire_at timestamptz default pg_catalog.clock_timestamp())
returns boolean
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_retry_dead';
comment on function timers.retry_dead(uuid, timestamptz) is
'Schedules a dead timer again, for fire_at. Its attempts stay counted but no longer count against the ceiling. True when it did. Errors: 22004, 22023; TM002 when a guarded claim holds the timer.';

create function timers.purge(before timestamptz, include_dead boolean default false) returns bigint
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_purge';
comment on function timers.purge(timestamptz, boolean) is
'Deletes timers that were fired or cancelled, with include_dead also those that died, before that instant; their ids are free again. Reads the whole table. Returns how many. Errors: 22004, 22023.';

create function timers.count_due(as_of timestamptz default pg_catalog.clock_timestamp()) returns bigint
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_count_due';
comment on function timers.count_due(timestamptz) is
'How many timers are due at as_of: scheduled, with fire_at <= as_of. Reads these alone. Errors: 22004, 22023.';

-- Each timer is looked up by itself: a join might read the whole table where there are many claims.
create function timers.find_stuck(
    min_age interval default null, min_attempts integer default null,
    as_of timestamptz default pg_catalog.clock_timestamp())
returns setof timers.timer
language sql stable parallel restricted security definer rows 100 set search_path = pg_catalog, pg_temp
begin atomic
    select t.timer_id, t.created_at, t.wake_at, t.fire_at, t.updated_at, t.attempts, t.forgiven, t.status,
           t.fired_event_id, t.process_manager, t.correlation_id, t.payload, t.died_at, t.last_error
    from timers.claim c
    cross join lateral (
        select l.timer_id, l.created_at, l.wake_at, l.fire_at, l.updated_at, l.attempts, l.forgiven, l.status,
               l.fired_event_id, l.process_manager, l.correlation_id, l.payload, l.died_at, l.last_error
        from timers.timer l where l.timer_id = c.timer_id limit 1) t
    where t.status = 'firing'
      and (find_stuck.min_age is null or c.claimed_at <= find_stuck.as_of - find_stuck.min_age)
      and (find_stuck.min_attempts is null or t.attempts >= find_stuck.min_attempts)
    order by c.claimed_at, t.timer_id;
end;
comment on function timers.find_stuck(interval, integer, timestamptz) is
'The firing timers whose claim is at least min_age old at as_of and that were attempted at least min_attempts times; null: no such bound. Oldest claim first.';

create function timers.count_stuck(
    min_age interval default null, min_attempts integer default null,
    as_of timestamptz default pg_catalog.clock_timestamp())
returns bigint
language sql stable parallel restricted security definer set search_path = pg_catalog, pg_temp
begin atomic
    select pg_catalog.count(*)
    from timers.find_stuck(count_stuck.min_age, count_stuck.min_attempts, count_stuck.as_of);
end;
comment on function timers.count_stuck(interval, integer, timestamptz) is 'How many timers find_stuck() would return.';

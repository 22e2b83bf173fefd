-- Kioku, a worked example: an application that records the turns of sessions, and lets timers decide when it goes over
-- them to distil what is worth remembering. README.md tells how it works. Needs the extension in the same database.

create schema kioku;

create table kioku.session (
    session_id   text not null primary key,
    memory_space text not null,
    started_at   timestamptz not null,
    completed_at timestamptz
);

create table kioku.turn (
    session_id  text not null references kioku.session,
    turn_index  integer not null check (turn_index >= 1),
    recorded_at timestamptz not null,
    primary key (session_id, turn_index)
);

-- What the timers are for: a row for each time that the application goes over the turns of a session.
create table kioku.flush (
    event_id     uuid not null primary key,
    timer_id     uuid not null,
    session_id   text not null references kioku.session,
    kind         text not null check (kind in ('idle', 'ramp', 'final')),
    turn_count   integer,
    memory_space text not null,
    due_at       timestamptz not null,
    fired_at     timestamptz not null,
    flushed_at   timestamptz not null default clock_timestamp()
);

-- Timers go into the outbox, which is the default; the channel rings when there is something to take.
select timers.configure('kioku-l1-extract', channel => 'kioku_l1_extract');

-- The id of a timer of a session: of "idle", "final" or "ramp:4", say. It derives from what never changes, so from no
-- time and no memory space: an event that is delivered again finds the timer that it made before, and so does the next
-- version of the application, in whatever language.
create function kioku.timer_id(session_id text, timer text) returns uuid
language sql immutable strict parallel safe
return timers.timer_id('6b696f6b-752d-7131-8000-6c3174696d72', 'kioku-l1-extract:' || session_id || ':' || timer);

create function kioku.timer_payload(kind text, turn_count integer, memory_space text) returns jsonb
language sql immutable parallel safe
return jsonb_build_object('kind', kind, 'turnCount', turn_count, 'memorySpaceId', memory_space);

-- The first version of the application knew no memory spaces, and timers that it scheduled may fire long after the
-- upgrade.
create function kioku.memory_space_of(payload jsonb) returns text
language sql immutable parallel safe
return coalesce(payload ->> 'memorySpaceId', 'legacy');

-- How long a session is without a turn before it is flushed. The setting is for demonstrations: nobody likes to wait.
create function kioku.idle_time() returns interval
language sql stable parallel safe
return coalesce(nullif(current_setting('kioku.idle_time', true), ''), '30 minutes')::interval;

-- The first turns are gone over at once, later ones now and then.
create function kioku.is_ramp_turn(turn_index integer) returns boolean
language sql immutable parallel safe
return turn_index in (1, 2, 4, 8, 16) or (turn_index > 16 and turn_index % 16 = 0);

-- Records a turn; the first starts the session, in its memory space. Returns what becomes of the session's idle timer.
-- May be called again for the same turn: what is recorded is kept, and no timer is touched.
create function kioku.record_turn(
    session_id text, turn_index integer, recorded_at timestamptz, memory_space text default 'personal')
returns timers.schedule_outcome
language plpgsql as $$
declare
    session  kioku.session;
    idle_id  constant uuid := kioku.timer_id(session_id, 'idle');
    quiet_at constant timestamptz := recorded_at + kioku.idle_time();
    idle_at  timestamptz;
begin
    insert into kioku.session (session_id, memory_space, started_at)
    values (session_id, memory_space, recorded_at)
    on conflict do nothing;
    -- One event of a session at a time.
    select * into strict session from kioku.session s where s.session_id = record_turn.session_id for no key update;

    insert into kioku.turn (session_id, turn_index, recorded_at)
    values (session_id, turn_index, recorded_at)
    on conflict do nothing;
    if not found then
        return 'kept';
    end if;
    if session.completed_at is not null then
        raise exception 'session "%" is completed', session_id using errcode = 'object_not_in_prerequisite_state';
    end if;

    if kioku.is_ramp_turn(turn_index) then
        perform timers.schedule_once(
            kioku.timer_id(session_id, 'ramp:' || turn_index), 'kioku-l1-extract', session_id, recorded_at,
            kioku.timer_payload('ramp', turn_index, session.memory_space));
    end if;

    -- Each turn pushes the one idle timer of its session later. One that came after the session had been quiet for the
    -- whole idle time does not, though the timer may not have fired yet: what is flushed, and when, depends on the
    -- turns alone, not on how fast they are delivered. Where there is no timer yet, either mode makes it.
    select t.fire_at into idle_at from timers.lookup(idle_id) t;
    return timers.schedule(
        idle_id, 'kioku-l1-extract', session_id, quiet_at,
        kioku.timer_payload('idle', turn_index, session.memory_space),
        mode => case when idle_at between recorded_at and quiet_at then 'replace' else 'keep' end::timers.rearm_mode);
end
$$;

-- Ends a session. True when it did, false when the session had ended before.
create function kioku.complete_session(session_id text, completed_at timestamptz) returns boolean
language plpgsql as $$
declare
    session kioku.session;
begin
    update kioku.session s set completed_at = complete_session.completed_at
    where s.session_id = complete_session.session_id and s.completed_at is null
    returning s.* into session;
    if not found then
        perform from kioku.session s where s.session_id = complete_session.session_id;
        if not found then
            raise exception 'there is no session "%"', session_id using errcode = 'no_data_found';
        end if;
        return false;
    end if;

    perform timers.schedule_once(
        kioku.timer_id(session_id, 'final'), 'kioku-l1-extract', session_id, completed_at,
        kioku.timer_payload('final', null, session.memory_space));
    return true;
end
$$;

-- The consumer: takes up to so many fired timers from the outbox and flushes their sessions, in one transaction, so
-- each exactly once. Returns the flushes. Here a flush is a row; the real work would be done in its place.
create function kioku.flush_due(max_flushes integer default 100) returns setof kioku.flush
language sql
begin atomic
    insert into kioku.flush (event_id, timer_id, session_id, kind, turn_count, memory_space, due_at, fired_at)
    select e.event_id, e.timer_id, e.correlation_id, e.payload ->> 'kind', (e.payload ->> 'turnCount')::integer,
           kioku.memory_space_of(e.payload), e.fire_at, e.fired_at
    from timers.take_events(max_flushes, 'kioku-l1-extract') e
    returning *;
end;

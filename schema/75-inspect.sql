-- Looking at timers: one, or page by page.

create type timers.timer_inspection as (
    timer_id        uuid,
    process_manager text,
    correlation_id  text,
    status          timers.timer_status,
    fire_at         timestamptz,
    payload         jsonb,
    attempts        integer,
    last_error      text,
    fired_event_id  uuid,
    created_at      timestamptz,
    updated_at      timestamptz,
    wake_at         timestamptz,
    died_at         timestamptz,
    forgiven        integer,
    age             interval,
    lag             interval,
    attempts_left   integer,
    next_due        timestamptz,
    explanation     text,
    delivery        timers.delivery,
    paused          boolean,
    channel         text,
    handler         text,
    run_as          text,
    max_attempts    integer,
    lease           interval,
    retry_delay     interval,
    retry_factor    double precision,
    retry_ceiling   interval,
    max_concurrent  integer,
    handler_timeout interval,
    retention       interval,
    claim_kind      text,
    claimed_by      text,
    claimed_at      timestamptz,
    lease_until     timestamptz,
    cursor          text
);
comment on type timers.timer_inspection is
'A timer as people look at it: the columns of timers.timer, how late it is, when it fires next or why it does not, the settings that apply to it, and who holds it, without the token.';
comment on column timers.timer_inspection.age is 'How long ago the timer was first scheduled.';
comment on column timers.timer_inspection.lag is 'How far a scheduled or firing timer is overdue, or how late a fired one fired, zero if ahead of its time; null when it is not due, cancelled, dead or being resumed.';
comment on column timers.timer_inspection.attempts_left is 'How many attempts it has until it is dead; null: any number.';
comment on column timers.timer_inspection.next_due is 'When it fires next, at once if that is over; null: not by itself.';
comment on column timers.timer_inspection.explanation is 'Why next_due is null.';
comment on column timers.timer_inspection.delivery is 'This and what follows: as the process manager is set, else the server.';
comment on column timers.timer_inspection.retention is 'How long it is kept once it was fired or cancelled; null: for ever.';
comment on column timers.timer_inspection.claim_kind is 'This and what follows: the claim on it, if there is one.';
comment on column timers.timer_inspection.cursor is 'In pages: hand it back for the page that begins behind this row.';

create function timers.inspect(timer_id uuid) returns setof timers.timer_inspection
language c volatile parallel unsafe rows 1 as 'MODULE_PATHNAME', 'timers_inspect';
comment on function timers.inspect(uuid) is
'The timer of that id with all that matters to a person: one row, or none. Errors: 22004.';

create function timers.pending_statuses() returns timers.timer_status[]
language sql immutable parallel safe set search_path = pg_catalog, pg_temp
return array['scheduled', 'firing']::timers.timer_status[];
comment on function timers.pending_statuses() is 'The states that count as pending: the timer is still to fire.';

create function timers.find_pending(
    process_manager text default null, correlation_id text default null, status timers.timer_status default null,
    due_before timestamptz default null, page_size integer default 50, cursor text default null)
returns setof timers.timer_inspection
language c volatile parallel unsafe rows 50 as 'MODULE_PATHNAME', 'timers_find_pending';
comment on function timers.find_pending(text, text, timers.timer_status, timestamptz, integer, text) is
'A page of timers that are scheduled or firing, in the order of process manager, wake_at and id: the first page_size (1 to 1000) of those that pass every filter that is not null; with the cursor of a row, those behind that row. due_before: fire_at is before that instant. A timer that stays as it is while its pages are read is met once; one that is moved may be met again or not at all. Errors: 22004; 22023, naming the argument; TM006 when the cursor is malformed, truncated, of another kind or made under another filter.';

create function timers.find_dead(
    process_manager text default null, correlation_id text default null, reason text default null,
    reason_match text default 'exact', died_before timestamptz default null, died_after timestamptz default null,
    page_size integer default 50, cursor text default null)
returns setof timers.timer_inspection
language c volatile parallel unsafe rows 50 as 'MODULE_PATHNAME', 'timers_find_dead';
comment on function timers.find_dead(text, text, text, text, timestamptz, timestamptz, integer, text) is
'A page of dead timers, in the order of their death and of their ids: the first page_size (1 to 1000) of those that pass every filter that is not null; with the cursor of a row, those behind that row. reason_match: exact, prefix or contains compare last_error with reason, character by character; none: without a reason. A timer that stays dead while its pages are read is met once. Errors: 22004; 22023, naming the argument; TM006 when the cursor is malformed, truncated, of another kind or made under another filter.';

-- Spans of time become seconds: how an interval is written depends on the session.
create function timers._inspection_json(timer timers.timer_inspection, observed_at timestamptz) returns jsonb
language sql stable parallel safe set search_path = pg_catalog, pg_temp
return (pg_catalog.to_jsonb(timer)
        - '{age,lag,lease,retry_delay,retry_ceiling,handler_timeout,retention}'::pg_catalog.text[])
    || pg_catalog.jsonb_build_object(
        'due_in_seconds', extract(epoch from (timer).fire_at - observed_at),
        'age_seconds', extract(epoch from (timer).age),
        'lag_seconds', extract(epoch from (timer).lag),
        'lease_seconds', extract(epoch from (timer).lease),
        'retry_delay_seconds', extract(epoch from (timer).retry_delay),
        'retry_ceiling_seconds', extract(epoch from (timer).retry_ceiling),
        'handler_timeout_seconds', extract(epoch from (timer).handler_timeout),
        'retention_seconds', extract(epoch from (timer).retention));
comment on function timers._inspection_json(timers.timer_inspection, timestamptz) is 'A row of a page as JSON.';

create function timers.pending_page(
    process_manager text default null, correlation_id text default null, status timers.timer_status default null,
    due_before timestamptz default null, page_size integer default 50, cursor text default null)
returns jsonb
language sql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
begin atomic
    with page as materialized (
        select f as timer, f.cursor, pg_catalog.row_number() over () as place
        from timers.find_pending(
            pending_page.process_manager, pending_page.correlation_id, pending_page.status, pending_page.due_before,
            pending_page.page_size, pending_page.cursor) f
    ), observed as materialized (
        select pg_catalog.clock_timestamp() as at
    )
    select pg_catalog.jsonb_build_object(
        'observed_at', o.at,
        'items', coalesce((
            select pg_catalog.jsonb_agg(timers._inspection_json(p.timer, o.at) order by p.place) from page p), '[]'),
        'next_cursor', (
            select p.cursor from page p
            where p.place = pending_page.page_size
              and exists (
                select from timers.find_pending(
                    pending_page.process_manager, pending_page.correlation_id, pending_page.status,
                    pending_page.due_before, 1, p.cursor))))
    from observed o;
end;
comment on function timers.pending_page(text, text, timers.timer_status, timestamptz, integer, text) is
'The page of find_pending() as JSON: observed_at, the clock; items, its rows, with spans of time in seconds; next_cursor, for the next page, null when there is none. Errors: as find_pending().';

create function timers.dead_page(
    process_manager text default null, correlation_id text default null, reason text default null,
    reason_match text default 'exact', died_before timestamptz default null, died_after timestamptz default null,
    page_size integer default 50, cursor text default null)
returns jsonb
language sql volatile parallel unsafe security definer set search_path = pg_catalog, pg_temp
begin atomic
    with page as materialized (
        select f as timer, f.cursor, pg_catalog.row_number() over () as place
        from timers.find_dead(
            dead_page.process_manager, dead_page.correlation_id, dead_page.reason, dead_page.reason_match,
            dead_page.died_before, dead_page.died_after, dead_page.page_size, dead_page.cursor) f
    ), observed as materialized (
        select pg_catalog.clock_timestamp() as at
    )
    select pg_catalog.jsonb_build_object(
        'observed_at', o.at,
        'items', coalesce((
            select pg_catalog.jsonb_agg(timers._inspection_json(p.timer, o.at) order by p.place) from page p), '[]'),
        'next_cursor', (
            select p.cursor from page p
            where p.place = dead_page.page_size
              and exists (
                select from timers.find_dead(
                    dead_page.process_manager, dead_page.correlation_id, dead_page.reason, dead_page.reason_match,
                    dead_page.died_before, dead_page.died_after, 1, p.cursor))))
    from observed o;
end;
comment on function timers.dead_page(text, text, text, text, timestamptz, timestamptz, integer, text) is
'The page of find_dead() as JSON: observed_at, the clock; items, its rows, with spans of time in seconds; next_cursor, for the next page, null when there is none. Errors: as find_dead().';

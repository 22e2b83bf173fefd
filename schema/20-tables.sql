-- Storage. The hot transitions (postpone, cancel, fire into the outbox) change no indexed column, so that
-- each is a heap-only update: no index and no index predicate may name status, fire_at, attempts or
-- updated_at. See docs/architecture.md, "Storage".

create table timers.timer (
    timer_id        uuid not null,
    created_at      timestamptz not null default pg_catalog.clock_timestamp(),
    wake_at         timestamptz not null,
    -- What the hot transitions change stands together: the WAL record of an update holds the span that differs.
    fire_at         timestamptz not null,
    updated_at      timestamptz not null default pg_catalog.clock_timestamp(),
    attempts        integer not null default 0,
    forgiven        integer not null default 0,
    status          timers.timer_status not null default 'scheduled',
    fired_event_id  uuid,
    process_manager text collate "C" not null,
    correlation_id  text collate "C" not null,
    payload         jsonb not null default '{}',
    died_at         timestamptz,
    last_error      text,
    constraint timer_pkey primary key (timer_id) with (fillfactor = 90)
) with (fillfactor = 70);

create index timer_due_idx on timers.timer (process_manager, wake_at);
create index timer_correlation_idx on timers.timer (correlation_id);
create index timer_dead_idx on timers.timer (died_at, timer_id) where died_at is not null;

comment on table timers.timer is 'One row per timer, for its whole life. Written by the functions of this schema; by hand, too: a trigger sees every write.';
comment on column timers.timer.timer_id is 'Chosen by the caller; see timers.timer_id().';
comment on column timers.timer.created_at is 'When the timer was first scheduled.';
comment on column timers.timer.wake_at is 'When the engine next looks at this row. At most fire_at or the moment of scheduling, whichever is later; postponing leaves it. Kept by a trigger.';
comment on column timers.timer.fire_at is 'When the timer is due.';
comment on column timers.timer.updated_at is 'The last change of state or time.';
comment on column timers.timer.attempts is 'How often the timer was claimed or delivered.';
comment on column timers.timer.forgiven is 'How many of the attempts do not count against the ceiling: those before the last retry_dead().';
comment on column timers.timer.status is 'See timers.timer_status.';
comment on column timers.timer.fired_event_id is 'The id of the event that the firing produced.';
comment on column timers.timer.process_manager is 'The name that the timer is routed by; its lane.';
comment on column timers.timer.correlation_id is 'The instance (saga, session, order) that the timer belongs to.';
comment on column timers.timer.payload is 'Opaque to the engine.';
comment on column timers.timer.died_at is 'When the timer was given up on; set while it is dead or being resumed.';
comment on column timers.timer.last_error is 'Why the last attempt failed, or why the timer is dead.';

create table timers.claim (
    timer_id    uuid not null,
    token       uuid not null,
    kind        text collate "C" not null,
    attempt     integer not null,
    claimed_at  timestamptz not null default pg_catalog.clock_timestamp(),
    lease_until timestamptz not null,
    claimed_by  text collate "C" not null,
    constraint claim_pkey primary key (timer_id),
    constraint claim_kind check (kind in ('notify', 'external', 'handler', 'resume'))
) with (fillfactor = 80);

create index claim_lease_idx on timers.claim (lease_until);

comment on table timers.claim is 'What a worker holds while it fires a timer, or somebody who resumes one. In flight only. Holds the tokens: not for those who may only read.';
comment on column timers.claim.token is 'Proves the claim; whoever presents it may complete, renew or release.';
comment on column timers.claim.kind is 'notify, external, handler: a firing; resume: a guarded claim of a dead timer.';
comment on column timers.claim.attempt is 'The attempt that this claim is; for a resume, which counts none, the last one.';
comment on column timers.claim.lease_until is 'When the claim lapses: the timer is requeued, or dead again.';
comment on column timers.claim.claimed_by is 'Role and process that claimed; for a resume, what claim_dead() was told.';

create table timers.outbox (
    position        bigint generated always as identity,
    event_id        uuid not null,
    timer_id        uuid not null,
    process_manager text collate "C" not null,
    correlation_id  text collate "C" not null,
    fire_at         timestamptz not null,
    fired_at        timestamptz not null,
    attempts        integer not null,
    payload         jsonb not null,
    leased_until    timestamptz,
    constraint outbox_pkey primary key (position)
);

-- For consumers of one process manager.
create index outbox_process_manager_idx on timers.outbox (process_manager, position);

comment on table timers.outbox is 'Fired timers, one row per firing, until a consumer takes them; see timers.take_events().';
comment on column timers.outbox.position is 'Order of delivery; within a process manager the order of firing.';
comment on column timers.outbox.event_id is 'UUIDv5(timer_id, fire_at in microseconds since 1970 as decimal text): the same firing always has the same id.';
comment on column timers.outbox.fired_at is 'The clock of the pass that fired the timer.';
comment on column timers.outbox.attempts is 'Which attempt this was.';
comment on column timers.outbox.leased_until is 'Until when a consumer holds the event by timers.lease_events().';

create table timers.process_manager (
    process_manager text collate "C" not null,
    delivery        timers.delivery not null default 'outbox',
    channel         text collate "C",
    handler         text collate "C",
    run_as          text collate "C",
    max_attempts    integer,
    lease           interval,
    retry_delay     interval,
    retry_factor    double precision,
    retry_ceiling   interval,
    max_concurrent  integer,
    handler_timeout interval,
    retention       interval,
    paused          boolean not null default false,
    created_at      timestamptz not null default pg_catalog.clock_timestamp(),
    constraint process_manager_pkey primary key (process_manager),
    constraint process_manager_name check (pg_catalog.octet_length(process_manager) between 1 and 255),
    constraint process_manager_channel check (pg_catalog.octet_length(channel) between 1 and 63),
    constraint process_manager_notify_channel check (delivery <> 'notify' or channel is not null),
    constraint process_manager_max_attempts check (max_attempts >= 0),
    constraint process_manager_lease check (lease > interval '0'),
    constraint process_manager_handler check (delivery <> 'handler' or (handler is not null and run_as is not null)),
    constraint process_manager_retry_delay check (retry_delay >= interval '0'),
    constraint process_manager_retry_factor check (retry_factor between 1 and 1000),
    constraint process_manager_retry_ceiling check (retry_ceiling >= interval '0'),
    constraint process_manager_max_concurrent check (max_concurrent >= 1),
    constraint process_manager_handler_timeout check (handler_timeout > interval '0'),
    constraint process_manager_retention check (retention >= interval '0')
);

comment on table timers.process_manager is 'Settings of each process manager; a row appears with its first timer. See timers.configure().';
comment on column timers.process_manager.process_manager is 'Its name, 1 to 255 bytes.';
comment on column timers.process_manager.created_at is 'When the row appeared.';
comment on column timers.process_manager.delivery is 'See timers.delivery.';
comment on column timers.process_manager.channel is 'NOTIFY channel: the doorbell of outbox delivery (none when null), the address of notify delivery.';
comment on column timers.process_manager.handler is 'The function of handler delivery, as schema.name; it takes a timers.timer and returns uuid.';
comment on column timers.process_manager.run_as is 'The role that the handler runs as.';
comment on column timers.process_manager.max_attempts is 'How often a timer is attempted before it is dead; null: no ceiling.';
comment on column timers.process_manager.lease is 'How long a claim holds unless renewed; null: the setting durable_timers.lease.';
comment on column timers.process_manager.retry_delay is 'After how long a handler that failed is tried again; null: durable_timers.retry_delay.';
comment on column timers.process_manager.retry_factor is 'By how much that grows with every further failure; null: durable_timers.retry_factor.';
comment on column timers.process_manager.retry_ceiling is 'The longest time until a retry; null: durable_timers.retry_ceiling.';
comment on column timers.process_manager.max_concurrent is 'How many timers are handled at a time; null: no limit.';
comment on column timers.process_manager.handler_timeout is 'How long the handler may run; null: durable_timers.handler_timeout.';
comment on column timers.process_manager.retention is 'How long fired and cancelled timers are kept; null: durable_timers.retention.';
comment on column timers.process_manager.paused is 'While true, nothing of this process manager fires.';

create table timers.safe_mark (
    process_manager text collate "C" not null,
    safe_at         timestamptz not null,
    constraint safe_mark_pkey primary key (process_manager)
) with (fillfactor = 50);

comment on table timers.safe_mark is 'Per process manager, an instant below which no scheduled wake_at lies, ever: where a starting dispatcher begins to scan. Not dumped: a restored database scans from the beginning.';

create table timers.armed (
    only_row    boolean not null default true,
    identity    text collate "C" not null,
    restored_at timestamptz,
    armed_at    timestamptz not null default pg_catalog.clock_timestamp(),
    armed_by    text collate "C" not null default session_user,
    constraint armed_pkey primary key (only_row),
    constraint armed_only_row check (only_row)
);

comment on table timers.armed is 'Under which identity this database fires by itself. A copy of it has another; see timers.arm(). Not dumped.';
comment on column timers.armed.identity is 'The server''s system identifier and the database''s oid, as of the last timers.arm() or CREATE EXTENSION.';
comment on column timers.armed.restored_at is 'Since when timers are here that were dumped elsewhere.';

-- What users store is configuration data: a dump and restore loses no timer, no event, no claim, no setting.
select pg_catalog.pg_extension_config_dump('timers.timer', '');
select pg_catalog.pg_extension_config_dump('timers.claim', '');
select pg_catalog.pg_extension_config_dump('timers.outbox', '');
select pg_catalog.pg_extension_config_dump('timers.outbox_position_seq', '');
select pg_catalog.pg_extension_config_dump('timers.process_manager', '');

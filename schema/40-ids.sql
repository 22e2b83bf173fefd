-- Deterministic ids.

create function timers.timer_id(namespace uuid, name text) returns uuid
language c immutable strict parallel safe as 'MODULE_PATHNAME', 'timers_timer_id';
comment on function timers.timer_id(uuid, text) is
'UUIDv5 (RFC 9562) of the UTF-8 bytes of name in namespace, whatever the encoding of the database: every language derives the same id. Null when an argument is null.';

create function timers._event_id(timer_id uuid, fire_at timestamptz) returns uuid
language c immutable strict parallel safe as 'MODULE_PATHNAME', 'timers_event_id';
comment on function timers._event_id(uuid, timestamptz) is
'UUIDv5 of fire_at, as decimal microseconds since 1970-01-01 UTC, in the namespace timer_id: the event id of a firing.';

-- Consuming the outbox.

create function timers.take_events(max_events integer default 100, process_manager text default null)
returns setof timers.outbox
language c volatile parallel unsafe rows 100 as 'MODULE_PATHNAME', 'timers_take_events';
comment on function timers.take_events(integer, text) is
'Deletes and returns up to max_events events, of one process manager (null: of all), in the order of position, skipping what other consumers hold or lease. In the caller''s transaction: what it does with them in this database happens exactly once. Errors: 22004, 22023.';

create function timers.lease_events(
    max_events integer default 100, lease interval default '1 minute', process_manager text default null)
returns setof timers.outbox
language c volatile parallel unsafe rows 100 as 'MODULE_PATHNAME', 'timers_lease_events';
comment on function timers.lease_events(integer, interval, text) is
'Returns up to max_events events, of one process manager (null: of all), in the order of position, and hides them from other consumers for lease. For effects outside this database: act, then call ack_events(); what is not acknowledged in time is handed out again, at least once. Errors: 22004, 22023.';

create function timers.ack_events(positions bigint[]) returns bigint
language c volatile parallel unsafe as 'MODULE_PATHNAME', 'timers_ack_events';
comment on function timers.ack_events(bigint[]) is
'Deletes the events at these positions, which a consumer leased and has dealt with. Returns how many there were. Errors: 22004.';

-- Consuming the outbox.

create function timers.take_events(max_events integer default 100, process_manager text default null)
returns setof timers.outbox
language c volatile parallel unsafe rows 100 as 'MODULE_PATHNAME', 'timers_take_events';
comment on function timers.take_events(integer, text) is
'Deletes and returns up to max_events events, of one process manager (null: of all), in the order of position, skipping what other consumers hold. In the caller''s transaction: what it does with them in this database happens exactly once. Errors: 22004, 22023.';

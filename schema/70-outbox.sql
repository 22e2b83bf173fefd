-- Consuming the outbox.

create function timers.take_events(max_events integer default 100, process_manager text default null)
returns setof timers.outbox
language sql volatile parallel unsafe security definer rows 100 set search_path = pg_catalog, pg_temp
begin atomic
    with found as materialized (
        select o.position from timers.outbox o
        where take_events.process_manager is null or o.process_manager = take_events.process_manager
        order by o.position
        limit take_events.max_events
        for update skip locked
    ), taken as (
        delete from timers.outbox o using found where o.position = found.position
        returning o.position, o.event_id, o.timer_id, o.process_manager, o.correlation_id, o.fire_at, o.fired_at,
                  o.attempts, o.payload
    )
    select * from taken order by taken.position;
end;
comment on function timers.take_events(integer, text) is
'Deletes and returns up to max_events events, of one process manager (null: of all), in the order of position, skipping what other consumers hold. In the caller''s transaction: what it does with them in this database happens exactly once.';

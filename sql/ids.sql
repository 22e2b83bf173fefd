-- Intent: ids are those that every other language derives by RFC 9562, whatever this database is encoded in.
set timezone = 'UTC';
set datestyle = 'ISO';
set client_encoding = 'UTF8';

-- Computed with Python: uuid.uuid5(namespace, name).
create temporary table known (namespace uuid, name text, id uuid);
insert into known (namespace, name, id) values
    ('6ba7b811-9dad-11d1-80b4-00c04fd430c8', 'https://example.org/orders/42', 'a81410e1-c901-5a3e-923f-26e7e5cfdbf8'),
    ('6ba7b811-9dad-11d1-80b4-00c04fd430c8', '', '1b4db7eb-4057-5ddf-91e0-36dec72071f5'),
    ('0190a3f2-5c1e-7b44-9a6f-3d2e1c0b9a87', 'idle:session-17', 'a37fd740-c1ef-5d40-ad3c-ca34045518a8'),
    ('0190a3f2-5c1e-7b44-9a6f-3d2e1c0b9a87', 'Grüße an 株式会社 🕰', '20203948-0f51-51ac-af1b-79d148dd054d'),
    ('0190a3f2-5c1e-7b44-9a6f-3d2e1c0b9a87', repeat('a', 1000), 'cc0f55a8-8bdc-538e-948f-8dec3160205f'),
    ('0190a3f2-5c1e-7b44-9a6f-3d2e1c0b9a87', E'it''s \\ "quoted"\n', '23e01b35-b369-5f05-a443-305149d31cef'),
    ('00000000-0000-0000-0000-000000000000', 'x', 'f3e951bb-a80b-5e6c-a038-a56ee0caa25d');
select left(name, 30) as name, timers.timer_id(namespace, name) = id as same from known order by id;

-- Values that are stored compressed, or outside the row, are the same names.
create temporary table stored (namespace uuid, name text);
insert into stored (namespace, name) values
    ('0190a3f2-5c1e-7b44-9a6f-3d2e1c0b9a87', repeat('a', 100000)),
    ('0190a3f2-5c1e-7b44-9a6f-3d2e1c0b9a87', repeat('a', 1000));
select timers.timer_id(namespace, name) = timers.timer_id(namespace, name || '') as same, length(name),
       timers.timer_id(namespace, name) = 'cc0f55a8-8bdc-538e-948f-8dec3160205f' as known
from stored order by length(name);

-- Version 5, variant 1, and no two alike.
select count(distinct i.id),
       bool_and(i.id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$') as version_5
from (select timers.timer_id('6ba7b811-9dad-11d1-80b4-00c04fd430c8', n::text) from generate_series(1, 10000) n) i (id);

-- Event ids: uuid.uuid5(timer_id, str(microseconds since 1970)).
create temporary table event (fire_at timestamptz, id uuid);
insert into event (fire_at, id) values
    ('4714-11-24 00:00:00+00 BC', '095d6223-4077-5f6f-b938-a917680897af'),
    ('1969-12-31 23:59:59.999999+00', 'f64ba377-7ab6-5fff-9de4-16d6d3a5cbf6'),
    ('1970-01-01 00:00:00+00', 'cb327acc-b6c6-5bf8-bd81-015627de0b45'),
    ('1970-01-01 00:00:00.000001+00', '8d66d002-fd4d-5041-b589-184f81ead193'),
    ('2000-01-01 00:00:00+00', '51d45a80-6447-5491-9305-f03f343d6a0c'),
    ('2024-02-29 12:34:56.789012+00', '13270ee1-c1fd-5a7d-b73c-f6d58c299ec5'),
    ('294276-12-31 23:59:59.999999+00', '849e1c2d-1fbf-588a-8863-8e7db77266e0');
do $$
declare
    e record;
    found uuid;
begin
    -- Each in a subtransaction of its own, since one id fires once.
    for e in select fire_at, id from event order by fire_at loop
        begin
            perform timers.schedule('11111111-2222-4333-8444-555555555555', 'regress ids', 'saga', e.fire_at);
            perform timers.fire_due('294276-12-31 23:59:59.999999+00');
            select o.event_id into strict found
            from timers.outbox o join timers.timer t on t.timer_id = o.timer_id and t.fired_event_id = o.event_id;
            raise exception using errcode = 'P0001', message = case when found = e.id then 'same' else 'DIFFERENT' end;
        exception when raise_exception then
            raise notice '% %', e.fire_at, sqlerrm;
        end;
    end loop;
end
$$;

-- In a database of another encoding the names are still the bytes of UTF-8.
create database regress_latin1 template template0 encoding 'LATIN1' lc_collate 'C' lc_ctype 'C';
select current_database() as here \gset
\c regress_latin1
set client_encoding = 'UTF8';
set client_min_messages = warning;
create extension durable_timers;
select pg_encoding_to_char(encoding) from pg_database where datname = current_database();
-- uuid.uuid5(..., 'Grüße')
select timers.timer_id('0190a3f2-5c1e-7b44-9a6f-3d2e1c0b9a87', 'Grüße') = '85eff476-2381-5208-8a2e-b11150b47612'
    as same;
select octet_length('Grüße'::text) as bytes_here;
\c :here
drop database regress_latin1;

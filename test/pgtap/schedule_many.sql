-- Intent: schedule_many does with each request what schedule would, answers in the order of the requests, lets the last
-- of several with the same id count, and does all or nothing.
begin;
select plan(81);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-b006-' || lpad(number::text, 12, '0'))::uuid $$;
-- 2090-01-01 at that hour.
create function pg_temp.hour(number integer) returns timestamptz
language sql immutable as $$ select timestamptz '2090-01-01 00:00+00' + number * interval '1 hour' $$;
create function pg_temp.request(number integer, at_hour integer, payload jsonb default '{}',
    lane text default 'tap many',
                                saga text default 'saga') returns timers.timer_request
language sql immutable as $$ select (pg_temp.id(number), lane, saga, pg_temp.hour(at_hour),
    payload)::timers.timer_request $$;
-- What came back: number=outcome, in order.
create function pg_temp.many(requests timers.timer_request[], mode timers.rearm_mode default 'replace') returns text
language sql volatile as $$
    select string_agg(right(m.timer_id::text, 3)::integer || '=' || m.outcome, ' ' order by m.place)
    from (select s.timer_id, s.outcome, row_number() over () as place
          from timers.schedule_many(many.requests, many.mode) s) m
$$;
-- What there is: number@hour payload.
create function pg_temp.all_rows() returns text
language sql volatile as $$
    select string_agg(right(t.timer_id::text, 3)::integer || '@'
        || extract(epoch from t.fire_at - pg_temp.hour(0))::integer / 3600
        || case when t.payload = '{}' then '' else t.payload::text end, ' ' order by t.timer_id)
    from timers.timer t where t.process_manager like 'tap many%'
$$;

-- New ones, in the order of the requests.
select is(pg_temp.many(array[pg_temp.request(3, 1), pg_temp.request(1, 2), pg_temp.request(2, 3)]),
    '3=inserted 1=inserted 2=inserted', 'an outcome for each request, in their order');
select is(pg_temp.all_rows(), '1@2 2@3 3@1', 'each is there');
select results_eq($$ select distinct t.status, t.attempts, t.process_manager collate "default",
    t.correlation_id collate "default"
    from timers.timer t $$, $$ select 'scheduled'::timers.timer_status, 0, 'tap many', 'saga' $$,
        'like those of schedule');
select is(pg_temp.many('{}'), null, 'no request, no outcome');
select is(pg_temp.many(array[pg_temp.request(3, 5, '1')]), '3=rearmed', 'one that is there is moved');
select is(pg_temp.all_rows(), '1@2 2@3 3@5' || '1', 'with its payload');
select is(pg_temp.many(array[pg_temp.request(4, 4), pg_temp.request(1, 7), pg_temp.request(5, 4)]),
    '4=inserted 1=rearmed 5=inserted', 'new and old together');
select is(pg_temp.many(array[pg_temp.request(6, 1, lane => 'tap many b', saga => 'x'),
    pg_temp.request(7, 1, lane => 'tap many c'),
    pg_temp.request(1, 1, lane => 'tap many c')]), '6=inserted 7=inserted 1=rearmed', 'of several process managers');
select results_eq($$ select process_manager collate "default" from timers.process_manager
    where process_manager like 'tap many%'
    order by 1 $$, $$ values ('tap many'), ('tap many b'), ('tap many c') $$, 'each of which has its settings');
select is((select process_manager || ' ' || correlation_id from timers.lookup(pg_temp.id(1))), 'tap many c saga',
    'a timer may move from one to the other');
select results_eq($$ select * from timers.schedule_many(mode => 'keep', requests => array[pg_temp.request(8, 1)]) $$,
    $$ select pg_temp.id(8), 'inserted'::timers.schedule_outcome $$, 'arguments and columns have names');
select is(pg_temp.many(array[array[pg_temp.request(11, 1), pg_temp.request(12, 2)],
    array[pg_temp.request(13, 3), pg_temp.request(14, 4)]]), '11=inserted 12=inserted 13=inserted 14=inserted',
    'an array of arrays is one list');

-- The same id several times: the last counts, each has an outcome, and it is the same.
select is(pg_temp.many(array[pg_temp.request(21, 9, '1'), pg_temp.request(22, 1), pg_temp.request(21, 3, '2'),
    pg_temp.request(21, 5, '3')]), '21=inserted 22=inserted 21=inserted 21=inserted', 'a new one');
select results_eq(format('select fire_at, payload from timers.lookup(%L)', pg_temp.id(21)),
    $$ select pg_temp.hour(5), jsonb '3' $$, 'is what the last says');
select is(pg_temp.many(array[pg_temp.request(21, 2), pg_temp.request(21, 6, '4')]), '21=rearmed 21=rearmed',
    'and so is an old one');
select results_eq(format('select fire_at, payload from timers.lookup(%L)', pg_temp.id(21)),
    $$ select pg_temp.hour(6), jsonb '4' $$, 'moved by the last');
select is(pg_temp.many(array[pg_temp.request(21, 2), pg_temp.request(21, 7, '5')], 'earlier'), '21=kept 21=kept',
    'also when only another would have moved it');
select is(pg_temp.many(array[pg_temp.request(21, 2), pg_temp.request(21, 7, '5')], 'later'), '21=rearmed 21=rearmed',
    'or only the last does');
select is(pg_temp.many(array[pg_temp.request(23, 2), pg_temp.request(23, 7, '5')], 'keep'), '23=inserted 23=inserted',
    'and whatever the mode');
select is((select payload from timers.lookup(pg_temp.id(23))), '5', 'is about those that were there before');
select is(pg_temp.many(array[pg_temp.request(24, 1, lane => 'tap many unused'), pg_temp.request(24, 2)]),
    '24=inserted 24=inserted',
    'of two process managers');
select is((select process_manager from timers.lookup(pg_temp.id(24))), 'tap many', 'it belongs to the last');

-- What the session's last batch came to decides what is tried first: that all are new, that all are there, or neither.
-- Where that is not so, what was tried leaves no trace.
create function pg_temp.expect(what text) returns text
language sql volatile as $$
    select pg_temp.many(array[pg_temp.request(40, 1)]);
    delete from timers.timer where timer_id = pg_temp.id(41);
    select pg_temp.many(case what
        when 'new' then array[pg_temp.request(41, 1)]
        when 'there' then array[pg_temp.request(40, 1)]
        else array[pg_temp.request(40, 1), pg_temp.request(41, 1)] end);
    delete from timers.timer where timer_id = pg_temp.id(41);
    select pg_temp.many(case what
        when 'new' then array[pg_temp.request(41, 1)]
        when 'there' then array[pg_temp.request(40, 1)]
        else array[pg_temp.request(40, 1), pg_temp.request(41, 1)] end)
$$;
-- 42 and 43 are there, 49 has been cancelled, 44 to 48 are new.
create temporary table batch (place integer generated always as identity, what text, requests timers.timer_request[],
                              mode timers.rearm_mode, outcomes text);
insert into batch (what, requests, mode, outcomes) values
    ('the last counts of new ones',
        array[pg_temp.request(45, 2, '1'), pg_temp.request(44, 3), pg_temp.request(45, 4, '2')],
        'replace', '45=inserted 44=inserted 45=inserted'),
    ('the last counts of old ones',
        array[pg_temp.request(43, 2, '1'), pg_temp.request(42, 3), pg_temp.request(43, 4, '2')],
        'replace', '43=rearmed 42=rearmed 43=rearmed'),
    ('old among new', array[pg_temp.request(48, 5), pg_temp.request(43, 5), pg_temp.request(46, 5)],
        'replace', '48=inserted 43=rearmed 46=inserted'),
    ('new among old', array[pg_temp.request(43, 6), pg_temp.request(47, 6), pg_temp.request(42, 6)],
        'replace', '43=rearmed 47=inserted 42=rearmed'),
    ('one that is spent among old', array[pg_temp.request(48, 7), pg_temp.request(49, 7), pg_temp.request(47, 8)],
        'later', '48=rearmed 49=too_late 47=rearmed'),
    ('one that is not to be moved', array[pg_temp.request(48, 6), pg_temp.request(47, 9)],
        'later', '48=kept 47=rearmed'),
    ('a bad one', array[pg_temp.request(50, 1), pg_temp.request(48, 9), pg_temp.request(42, 9, saga => '')],
        'replace', 'argument "correlation_id" must not be empty');
create function pg_temp.many_or_error(requests timers.timer_request[], mode timers.rearm_mode) returns text
language plpgsql as $$
begin
    return pg_temp.many(requests, mode);
exception when invalid_parameter_value then
    return sqlerrm;
end
$$;
create function pg_temp.guesses() returns setof text
language plpgsql as $$
declare
    what text;
    b batch;
begin
    foreach what in array '{new, there, neither}'::text[] loop
        delete from timers.timer where timer_id between pg_temp.id(42) and pg_temp.id(49);
        perform pg_temp.many(array[pg_temp.request(42, 1), pg_temp.request(43, 1), pg_temp.request(49, 1)]);
        perform timers.cancel(pg_temp.id(49));
        for b in select * from batch order by place loop
            perform pg_temp.expect(what);
            return next is(pg_temp.many_or_error(b.requests, b.mode), b.outcomes, what || ' expected: ' || b.what);
        end loop;
        return next is(
            (select string_agg(format('%s@%s%s', right(t.timer_id::text, 2),
                                      extract(epoch from t.fire_at - pg_temp.hour(0))::integer / 3600,
                                      nullif(t.payload, '{}')), ' ' order by t.timer_id)
             from timers.timer t where t.timer_id between pg_temp.id(42) and pg_temp.id(50)),
            '42@6 43@6 44@3 45@42 46@5 47@9 48@7 49@1', 'and each is there once, as last requested');
    end loop;
end
$$;
select pg_temp.guesses();

-- Every mode in every state, as schedule has it: the same call by schedule on a twin.
insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, died_at)
select pg_temp.id(twin * 100 + m.place::integer * 20 + h.hours * 6 + s.place::integer - 1), 'tap twins', 'saga',
    pg_temp.hour(10), s.status,
    case when s.status = 'dead' then now() end
from unnest(enum_range(null::timers.rearm_mode)) with ordinality as m (mode, place),
    unnest(enum_range(null::timers.timer_status)) with ordinality as s (status, place), generate_series(0, 2) h (hours),
    generate_series(3, 7, 4) as t (twin);
create function pg_temp.twins() returns setof text
language plpgsql as $$
declare
    m timers.rearm_mode;
    numbers integer[];
    singly text;
    together text;
    place integer := 0;
begin
    foreach m in array enum_range(null::timers.rearm_mode) loop
        place := place + 1;
        -- An hour before the timer's time, that time, an hour after it; and one that is new.
        numbers := array(select place * 20 + n from generate_series(0, 18) n);
        select string_agg(timers.schedule(pg_temp.id(300 + n), 'tap twins', 'saga',
            pg_temp.hour(9 + (n - place * 20) / 6), '"new"', m)::text,
            ' ' order by n) into singly from unnest(numbers) n;
        select string_agg(s.outcome::text, ' ' order by s.at) into together
        from (select o.outcome, row_number() over () as at from timers.schedule_many(
            array(select pg_temp.request(700 + n, 9 + (n - place * 20) / 6, '"new"', 'tap twins')
                  from unnest(numbers) n), m) o) s;
        return next is(together, singly, m || ': the outcomes of schedule');
        return next is(
            (select string_agg(concat_ws(' ', t.status, t.fire_at, t.payload, t.correlation_id, t.attempts),
                ', ' order by t.timer_id)
             from timers.timer t join unnest(numbers) n on t.timer_id = pg_temp.id(700 + n)),
            (select string_agg(concat_ws(' ', t.status, t.fire_at, t.payload, t.correlation_id, t.attempts),
                ', ' order by t.timer_id)
             from timers.timer t join unnest(numbers) n on t.timer_id = pg_temp.id(300 + n)), 'and the same timers');
        return next isnt(position('too_late' in together), 0, 'some of them too late');
    end loop;
end
$$;
select pg_temp.twins();
select is(timers.schedule_once(pg_temp.id(320), 'tap twins', 'saga', pg_temp.hour(1)), false, 'the twins are there');

-- Those in the past are due at once, in the order of their ids.
select is(pg_temp.many(array[pg_temp.request(31, -9999999), pg_temp.request(32, -9999998)]), '31=inserted 32=inserted',
    'in the past');
select cmp_ok(timers.fire_due(), '=', 2, 'due at once');

-- Many.
select is((select count(*) filter (where outcome = 'inserted') from timers.schedule_many(array(
    select (gen_random_uuid(), 'tap bulk', 'bulk ' || n, pg_temp.hour(n % 7), to_jsonb(n))::timers.timer_request
    from generate_series(1, 20000) n))), 20000::bigint, 'twenty thousand');
select is((select count(*) from timers.timer t where t.process_manager = 'tap bulk' and t.payload = to_jsonb(split_part(
    t.correlation_id, ' ', 2)::integer)
    and t.fire_at = pg_temp.hour(split_part(t.correlation_id, ' ', 2)::integer % 7)), 20000::bigint,
    'each as requested');
select is((select count(*) filter (where outcome = 'rearmed') from timers.schedule_many(array(
    select (t.timer_id, t.process_manager, t.correlation_id, t.fire_at + interval '1 hour',
        t.payload)::timers.timer_request
    from timers.timer t where t.process_manager = 'tap bulk'))), 20000::bigint, 'moved');

-- All or nothing: a bad one among good ones, told by its place and what is wrong.
create temporary table bad (what text, request timers.timer_request, state text, name text);
insert into bad values
    ('a null', null, '22004', 'timer_id'),
    ('no id', (null, 'tap bad', 'saga', pg_temp.hour(1), '{}'), '22004', 'timer_id'),
    ('no process manager', (pg_temp.id(900), null, 'saga', pg_temp.hour(1), '{}'), '22004', 'process_manager'),
    ('no correlation id', (pg_temp.id(900), 'tap bad', null, pg_temp.hour(1), '{}'), '22004', 'correlation_id'),
    ('no time', (pg_temp.id(900), 'tap bad', 'saga', null, '{}'), '22004', 'fire_at'),
    ('no payload', (pg_temp.id(900), 'tap bad', 'saga', pg_temp.hour(1), null), '22004', 'payload'),
    ('an empty process manager', (pg_temp.id(900), '', 'saga', pg_temp.hour(1), '{}'), '22023', 'empty'),
    ('a long process manager', (pg_temp.id(900), repeat('x', 256), 'saga', pg_temp.hour(1), '{}'), '22023', '255'),
    ('an empty correlation id', (pg_temp.id(900), 'tap bad', '', pg_temp.hour(1), '{}'), '22023', 'correlation_id'),
    ('a long correlation id', (pg_temp.id(900), 'tap bad', repeat('x', 1025), pg_temp.hour(1), '{}'), '22023',
        'correlation_id'),
    ('an infinite time', (pg_temp.id(900), 'tap bad', 'saga', 'infinity', '{}'), '22023', 'fire_at');
create function pg_temp.refusal(request timers.timer_request) returns text
language plpgsql as $$
declare
    detail text;
begin
    perform timers.schedule_many(array[pg_temp.request(901, 1, lane => 'tap bad'), request,
        pg_temp.request(902, 1, lane => 'tap bad')]);
    return 'accepted';
exception when others then
    get stacked diagnostics detail = pg_exception_detail;
    return sqlstate || ' ' || sqlerrm || ' ' || coalesce(detail, '');
end
$$;
select matches(pg_temp.refusal(b.request), b.state || ' .*' || b.name, b.what) from bad b;
select matches(pg_temp.refusal(null), 'Request 2', 'a null is told by its place');
select is((select count(*) from timers.timer where process_manager = 'tap bad'), 0::bigint,
    'nothing of it is scheduled');
select throws_ok('select timers.schedule_many(null)', '22004', null, 'no array');
select throws_ok('select timers.schedule_many(''{}'', null)', '22004', null, 'no mode');
select throws_like('select timers.schedule_many(null)', '%"requests"%', 'named');
select throws_like('select timers.schedule_many(''{}'', null)', '%"mode"%', 'both');

select * from finish();
rollback;

-- Intent: of pages, sizes, filters and cursors that make no sense are refused for what they are.
begin;
select plan(78);

insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, last_error, died_at)
select gen_random_uuid(), 'tap pages ' || chr(97 + n % 2), 'saga', '2090-01-01 00:00+00',
       case when n <= 150 then 'scheduled' else 'dead' end::timers.timer_status, case when n > 150 then 'broken' end,
       case when n > 150 then timestamptz '2020-01-01 00:00+00' end
from generate_series(1, 300) n;

-- Sizes.
select is((select count(*) from timers.find_pending(page_size => s)), s::bigint, 'a page of ' || s)
from unnest(array[1, 2, 100]) s;
select lives_ok('select timers.find_pending(page_size => 1000)', 'a thousand at most');
select is((select count(*) from timers.find_pending()), 50::bigint, 'fifty by default');
select is((select count(*) from timers.find_dead()), 50::bigint, 'of either kind');
select is(jsonb_array_length(timers.pending_page() -> 'items'), 50, 'in JSON, too');
select unnest(array[throws_ok(format('select timers.%s(page_size => %s)', f, s), '22023', null, format('%s: %s', f, s)),
    throws_like(format('select timers.%s(page_size => %s)', f, s), '%"page_size"%1000%', 'which is named')])
from unnest(array['find_pending', 'find_dead', 'pending_page', 'dead_page']) f, unnest(array[0, -1, 1001]) s;
select throws_ok('select timers.find_pending(page_size => null)', '22004', null, 'no size at all');

-- Filters that make no sense.
select throws_ok('select timers.' || c.call, c.code, null, c.call) from (values
    ('find_pending(process_manager => '''')', '22023'), ('find_pending(correlation_id => '''')', '22023'),
    ('find_pending(process_manager => repeat(''n'', 256))', '22023'), ('find_pending(due_before => ''infinity'')',
        '22023'),
    ('find_dead(process_manager => '''')', '22023'), ('find_dead(correlation_id => '''')', '22023'),
    ('find_dead(died_before => ''infinity'')', '22023'), ('find_dead(died_after => ''-infinity'')', '22023'),
    ('find_dead(reason => ''x'', reason_match => ''like'')', '22023'), ('find_dead(reason_match => '''')', '22023'),
    ('find_dead(reason => ''x'', reason_match => ''none'')', '22023'), ('find_dead(reason_match => ''prefix'')',
        '22004'),
    ('find_dead(reason_match => ''contains'')', '22004'), ('pending_page(status => ''dead'')', '22023'),
    ('dead_page(reason_match => ''like'')', '22023')) c (call, code);
select case when s = any (timers.pending_statuses())
    then lives_ok(format('select timers.find_pending(status => %L)', s), s || ' is pending')
    else throws_ok(format('select timers.find_pending(status => %L)', s), '22023', null, s || ' is not') end
from unnest(enum_range(null::timers.timer_status)) s;

-- Cursors.
create function pg_temp.refused(call text) returns text
language plpgsql as $$
declare
    detail text;
    hint text;
begin
    execute 'select timers.' || call;
    return 'accepted';
exception when others then
    get stacked diagnostics detail = pg_exception_detail, hint = pg_exception_hint;
    return concat(sqlstate, ' ', sqlerrm, case when detail = '' or hint = '' then ' without detail or hint' end);
end
$$;
select cursor as pending from timers.find_pending('tap pages a', page_size => 3) limit 1 \gset
select cursor as dead from timers.find_dead('tap pages a', page_size => 3) limit 1 \gset
select is(pg_temp.refused(replace(replace(c.call, '$pending', quote_literal(:'pending')), '$dead',
    quote_literal(:'dead'))),
    c.says, c.call)
from (values
    ('find_pending(''tap pages a'', cursor => $pending)', 'accepted'),
    ('find_pending(''tap pages a'', page_size => 1000, cursor => $pending)', 'accepted'),
    ('pending_page(''tap pages a'', cursor => $pending)', 'accepted'),
    ('find_dead(''tap pages a'', cursor => $dead)', 'accepted'),
    ('find_dead(''tap pages a'', reason_match => null, cursor => $dead)', 'accepted'),
    ('find_pending(''tap pages b'', cursor => $pending)', 'TM006 argument "cursor" was made under another filter'),
    ('find_pending(cursor => $pending)', 'TM006 argument "cursor" was made under another filter'),
    ('find_pending(''tap pages a'', ''saga 1'', cursor => $pending)',
        'TM006 argument "cursor" was made under another filter'),
    ('find_pending(''tap pages a'', status => ''firing'', cursor => $pending)',
     'TM006 argument "cursor" was made under another filter'),
    ('find_pending(''tap pages a'', due_before => now(), cursor => $pending)',
     'TM006 argument "cursor" was made under another filter'),
    ('find_dead(''tap pages a'', reason => ''x'', cursor => $dead)',
        'TM006 argument "cursor" was made under another filter'),
    ('find_dead(''tap pages a'', reason_match => ''none'', cursor => $dead)',
     'TM006 argument "cursor" was made under another filter'),
    ('find_dead(''tap pages a'', died_after => now(), cursor => $dead)',
     'TM006 argument "cursor" was made under another filter'),
    ('find_dead(''tap pages a'', died_before => now(), cursor => $dead)',
     'TM006 argument "cursor" was made under another filter'),
    ('find_pending(''tap pages a'', cursor => $dead)', 'TM006 argument "cursor" is of another kind'),
    ('find_dead(''tap pages a'', cursor => $pending)', 'TM006 argument "cursor" is of another kind'),
    ('dead_page(''tap pages a'', cursor => $pending)', 'TM006 argument "cursor" is of another kind'),
    ('find_pending(''tap pages a'', cursor => left($pending, -1))', 'TM006 argument "cursor" is truncated'),
    ('find_pending(''tap pages a'', cursor => left($pending, 20))', 'TM006 argument "cursor" is truncated'),
    ('find_pending(''tap pages a'', cursor => left($pending, 5))', 'TM006 argument "cursor" is truncated'),
    ('find_dead(''tap pages a'', cursor => left($dead, -1))', 'TM006 argument "cursor" is truncated'),
    ('find_pending(''tap pages a'', cursor => '''')', 'TM006 argument "cursor" is malformed'),
    ('find_pending(''tap pages a'', cursor => ''second page'')', 'TM006 argument "cursor" is malformed'),
    ('find_pending(''tap pages a'', cursor => $pending || ''A'')', 'TM006 argument "cursor" is malformed'),
    ('find_pending(''tap pages a'', cursor => overlay($pending placing ''____'' from length($pending) - 3))',
     'TM006 argument "cursor" is malformed')) c (call, says);

select * from finish();
rollback;

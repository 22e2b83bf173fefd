-- Intent: requeue, dead_letter and retry_dead answer in every state as the contract says, take the claim away with the
-- state, and leave everything else of the timer alone.
begin;
select plan(108);

create function pg_temp.id(number integer) returns uuid
language sql immutable as $$ select ('00000000-0000-4000-b001-' || lpad(number::text, 12, '0'))::uuid $$;
create function pg_temp.row_of(number integer) returns text
language sql stable as $$ select t::text from timers.timer t where t.timer_id = pg_temp.id(number) $$;
create temporary table held (timer_id uuid, attempt integer, token uuid);
create function pg_temp.claim(number integer) returns integer
language sql volatile as $$
    with claimed as (
        insert into held (timer_id, attempt, token)
        select c.timer_id, c.attempts, c.claim_token
        from timers.claim_due('tap recovery ' || number, 1, null, '2095-01-01 00:00+00') c returning attempt)
    select attempt from claimed
$$;
create function pg_temp.token(number integer) returns uuid
language sql stable as $$
    select h.token from held h where h.timer_id = pg_temp.id(number) order by h.attempt desc limit 1
$$;

-- Brings a timer of its own into a state: each with a process manager of its own, so that claims pick it.
create function pg_temp.make(number integer, state text) returns void
language plpgsql as $$
begin
    if state = 'none' then
        return;
    end if;
    perform timers.configure('tap recovery ' || number, 'external');
    perform timers.schedule(pg_temp.id(number), 'tap recovery ' || number, 'saga', '2090-01-01 00:00+00', '{"a": 1}');
    if state = 'cancelled' then
        perform timers.cancel(pg_temp.id(number));
    elsif state = 'dead' then
        perform timers.dead_letter(pg_temp.id(number), 'first reason');
    elsif state <> 'scheduled' then
        perform pg_temp.claim(number);
        if state = 'fired' then
            perform timers.mark_fired(pg_temp.id(number), pg_temp.id(number), pg_temp.token(number));
        elsif state = 'resuming' then
            update timers.timer set status = 'resuming' where timer_id = pg_temp.id(number);
            update timers.claim set kind = 'resume' where timer_id = pg_temp.id(number);
        end if;
    end if;
end
$$;

-- Every function in every state: its answer or the SQLSTATE it raises, and the state that it leaves.
create function pg_temp.matrix() returns setof text
language plpgsql as $$
declare
    c record;
    number integer := 100;
    answer text;
    before text;
    call text;
begin
    for c in
        select * from (values
            ('requeue', 'none', 'false', null), ('requeue', 'scheduled', 'false', null),
            ('requeue', 'firing', 'true', 'scheduled'), ('requeue', 'fired', 'false', null),
            ('requeue', 'cancelled', 'false', null), ('requeue', 'dead', 'false', null),
            ('requeue', 'resuming', 'TM002', null),
            ('dead_letter', 'none', 'false', null), ('dead_letter', 'scheduled', 'true', 'dead'),
            ('dead_letter', 'firing', 'true', 'dead'), ('dead_letter', 'fired', 'false', null),
            ('dead_letter', 'cancelled', 'false', null), ('dead_letter', 'dead', 'false', null),
            ('dead_letter', 'resuming', 'TM002', null),
            ('retry_dead', 'none', 'false', null), ('retry_dead', 'scheduled', 'false', null),
            ('retry_dead', 'firing', 'false', null), ('retry_dead', 'fired', 'false', null),
            ('retry_dead', 'cancelled', 'false', null), ('retry_dead', 'dead', 'true', 'scheduled'),
            ('retry_dead', 'resuming', 'TM002', null)) m (name, state, answer, becomes)
    loop
        number := number + 1;
        perform pg_temp.make(number, c.state);
        before := pg_temp.row_of(number);
        call := format('select timers.%I(%L%s)::text', c.name, pg_temp.id(number),
            case c.name when 'dead_letter' then ', ''a reason'''
                when 'retry_dead' then ', ''2091-01-01 00:00+00''' else '' end);
        begin
            execute call into answer;
        exception when others then
            answer := sqlstate;
        end;
        return next is(answer, c.answer, format('%s of %s: %s', c.name, c.state, c.answer));
        if c.becomes is null then
            return next is(pg_temp.row_of(number), before, 'and nothing has changed');
            return next is((select count(*) from timers.claim where timer_id = pg_temp.id(number)),
                (c.state in ('firing', 'resuming'))::integer::bigint, 'nor has the claim');
        else
            return next is((select status::text from timers.lookup(pg_temp.id(number))), c.becomes,
                'which is ' || c.becomes);
            return next is((select count(*) from timers.claim where timer_id = pg_temp.id(number)), 0::bigint,
                'and nobody holds it');
        end if;
    end loop;
end
$$;
select pg_temp.matrix();

-- requeue: only state and claim change.
select pg_temp.make(1, 'firing') \g /dev/null
update timers.timer set last_error = 'kept' where timer_id = pg_temp.id(1);
select ok(timers.requeue(pg_temp.id(1)), 'a firing timer is requeued');
select results_eq(
    format('select fire_at, attempts, last_error, payload, fired_event_id, died_at from timers.lookup(%L)',
        pg_temp.id(1)),
    $$ select timestamptz '2090-01-01 00:00+00', 1, 'kept'::text, jsonb '{"a": 1}', null::uuid, null::timestamptz $$,
    'with its time, attempts, error and payload');
select throws_ok(format('select timers.%s', c.call), 'TM003', null, 'its old token is stale: ' || c.call)
from (values (format('mark_fired(%L, %L, %L)', pg_temp.id(1), pg_temp.id(1), pg_temp.token(1))),
             (format('renew(%L, %L)', pg_temp.id(1), pg_temp.token(1))),
             (format('release(%L, %L)', pg_temp.id(1), pg_temp.token(1)))) c (call);
select is(pg_temp.claim(1), 2, 'it is claimed again, for its second attempt');
select is(timers.mark_fired(pg_temp.id(1), pg_temp.id(1), pg_temp.token(1)), true, 'and completed with the new token');

-- A timer that is requeued again and again still comes to its ceiling.
select pg_temp.make(2, 'firing') \g /dev/null
select timers.configure('tap recovery 2', max_attempts => 2) \g /dev/null
select ok(timers.requeue(pg_temp.id(2)), 'requeued after its first attempt');
select is(pg_temp.claim(2), 2, 'claimed for its second');
select ok(timers.requeue(pg_temp.id(2)), 'requeued');
select is(pg_temp.claim(2), null, 'there is no third');
select results_eq(format('select status, last_error collate "default" from timers.lookup(%L)', pg_temp.id(2)),
    $$ select 'dead'::timers.timer_status, 'timer exceeded attempt ceiling of 2' $$, 'it is dead');

-- dead_letter: why and since when.
select pg_temp.make(3, 'firing') \g /dev/null
select ok(timers.dead_letter(pg_temp.id(3), 'the account is closed'), 'a firing timer is given up on');
select results_eq(
    format('select fire_at, attempts, last_error, died_at > now() and died_at <= clock_timestamp(), fired_event_id
        from timers.lookup(%L)', pg_temp.id(3)),
    $$ select timestamptz '2090-01-01 00:00+00', 1, 'the account is closed'::text, true, null::uuid $$,
        'with the reason');
select throws_ok(format('select timers.mark_fired(%L, %L, %L)', pg_temp.id(3), pg_temp.id(3), pg_temp.token(3)),
    'TM003', null,
    'whoever held it cannot complete it');
select is(timers.mark_fired(pg_temp.id(3), pg_temp.id(3)), false, 'nor can anybody without a token');
select is(timers.schedule(pg_temp.id(3), 'tap recovery 3', 'saga', '2090-01-01 00:00+00'), 'too_late',
    'it is not scheduled anew');
select is(timers.cancel(pg_temp.id(3)), false, 'nor cancelled');
select is(pg_temp.claim(3), null, 'nor claimed');
select is(timers.dead_letter(pg_temp.id(3), 'another reason'), false, 'nor does it die twice');
select is((select last_error from timers.lookup(pg_temp.id(3))), 'the account is closed', 'the first reason stays');

-- retry_dead: attempts stay counted, and there are as many again until the ceiling.
select pg_temp.make(4, 'scheduled') \g /dev/null
select timers.configure('tap recovery 4', max_attempts => 1) \g /dev/null
select is(pg_temp.claim(4), 1, 'one attempt');
select timers.release(pg_temp.id(4), pg_temp.token(4), '2090-01-01 00:00+00', 'no answer') \g /dev/null
select is(pg_temp.claim(4), null, 'no second');
select is((select status from timers.lookup(pg_temp.id(4))), 'dead', 'but death');
select ok(timers.retry_dead(pg_temp.id(4), '2092-01-01 00:00+00'), 'it is tried once more');
select results_eq(format('select status, fire_at, attempts, died_at from timers.lookup(%L)', pg_temp.id(4)),
    $$ select 'scheduled'::timers.timer_status, timestamptz '2092-01-01 00:00+00', 2, null::timestamptz $$,
    'at another time, with its attempts');
select is(timers.retry_dead(pg_temp.id(4)), false, 'that is done once');
select is((select count(*) from timers.claim_due('tap recovery 4', 1, null, '2091-12-31 23:59+00')), 0::bigint,
    'it waits');
select is(pg_temp.claim(4), 3, 'it has an attempt again');
select ok(timers.requeue(pg_temp.id(4)), 'which fails');
select is(pg_temp.claim(4), null, 'and no other');
select is((select last_error from timers.lookup(pg_temp.id(4))), 'timer exceeded attempt ceiling of 1',
    'for the same reason');
select ok(timers.retry_dead(pg_temp.id(4)), 'without a time');
select ok((select fire_at between now() and clock_timestamp() from timers.lookup(pg_temp.id(4))), 'it is due at once');
select ok(timers.cancel(pg_temp.id(4)), 'and may be cancelled');
select is(timers.retry_dead(pg_temp.id(4)), false, 'which is final');

-- Undone with the caller's transaction.
select pg_temp.make(5, 'firing') \g /dev/null
savepoint before;
select ok(timers.dead_letter(pg_temp.id(5), 'a mistake'), 'given up on');
rollback to before;
select is(timers.mark_fired(pg_temp.id(5), pg_temp.id(5), pg_temp.token(5)), true,
    'what is rolled back leaves the claim');

-- Bad arguments, by name.
select throws_ok(call, state, null, call) from (values
    ('select timers.requeue(null)', '22004'),
    ('select timers.dead_letter(null, ''x'')', '22004'),
    (format('select timers.dead_letter(%L, null)', pg_temp.id(1)), '22004'),
    (format('select timers.dead_letter(%L, '''')', pg_temp.id(1)), '22023'),
    ('select timers.retry_dead(null)', '22004'),
    (format('select timers.retry_dead(%L, null)', pg_temp.id(1)), '22004'),
    (format('select timers.retry_dead(%L, ''infinity'')', pg_temp.id(1)), '22023')) c (call, state);

select * from finish();
rollback;

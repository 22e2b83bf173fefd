-- Intent: the full matrix. Every way to schedule, against every state of the timer and with times on either side of its
-- own, answers with the outcome that a model in plain SQL predicts and changes the columns that it predicts, no other:
-- whether the session expects the timer to be new, to be there, or neither.
begin;
set local timezone = 'UTC';

-- How to bring the timer $1, the only one of the lane $2 and scheduled, into the state; and whether it may be moved then.
create temporary table state (place integer generated always as identity, state text, movable boolean, how text);
insert into state (state, movable, how) values
    ('none', null, 'delete from timers.timer where timer_id = $1'),
    ('scheduled', true, 'select'),
    ('postponed', true, $$ select timers.schedule($1, $2, 'saga', t.fire_at + interval '30 minutes', '"old"')
                           from timers.lookup($1) t $$),
    ('overdue', true, $$ select timers.schedule($1, $2, 'saga', t.fire_at - interval '3 hours', '"old"')
                         from timers.lookup($1) t $$),
    ('scheduled again', true, $$ select timers.release($1, c.claim_token, c.fire_at, 'once failed')
                                 from timers.claim_due($2, as_of => '2100-01-01') c $$),
    ('firing', false, $$ select from timers.claim_due($2, as_of => '2100-01-01') c $$),
    ('fired', false, $$ select timers.mark_fired($1, $1, c.claim_token)
                        from timers.claim_due($2, as_of => '2100-01-01') c $$),
    ('cancelled', false, 'select timers.cancel($1)'),
    ('dead', false, $$ select timers.dead_letter($1, 'given up') $$),
    ('resuming', false, $$ with resumed as (
            update timers.timer set status = 'resuming', died_at = now() where timer_id = $1 returning timer_id)
        insert into timers.claim (timer_id, token, kind, attempt, lease_until, claimed_by)
        select timer_id, gen_random_uuid(), 'resume', 0, '2100-01-01', 'tap' from resumed $$);

-- Times are offered so far from the time of the timer, or from the next two hours when there is none.
create temporary table offer (distance interval);
insert into offer values ('-4 hours'), ('-15 minutes'), ('0'), ('15 minutes'), ('4 hours');

-- bound: the max_wait of a debounce, less its quiet time.
create temporary table way (place integer generated always as identity, call text, mode timers.rearm_mode,
                            bound interval);
insert into way (call, mode)
select c.call, m.mode
from unnest('{schedule, schedule_in, schedule_many}'::text[]) c (call),
    unnest(enum_range(null::timers.rearm_mode)) m (mode);
insert into way (call, mode, bound) values
    ('schedule_once', 'keep', null), ('debounce', 'replace', null), ('debounce', 'replace', '10 hours'),
    ('debounce', 'replace', '-5 minutes');

create function pg_temp.call_of(w way) returns text
language sql immutable as $$ select concat_ws(' ', w.call, w.mode, w.bound) $$;

select plan((select count(*)::integer from way, state) + 2);

-- What the session's last calls came to decides what it tries first.
create function pg_temp.prime(expects text) returns void
language plpgsql as $$
declare
    fresh timers.timer_request :=
        (gen_random_uuid(), 'tap primer', 'saga', clock_timestamp() + interval '1 day', '{}');
    another timers.timer_request := fresh;
begin
    another.timer_id := gen_random_uuid();
    perform timers.schedule_many(array[fresh]);
    perform timers.schedule(gen_random_uuid(), 'tap primer', 'saga', fresh.fire_at);
    if expects = 'there' then
        -- The first may be needed to find out.
        perform timers.schedule_many(array[fresh]) from generate_series(1, 2);
        perform timers.schedule(fresh.timer_id, 'tap primer', 'saga', fresh.fire_at) from generate_series(1, 2);
    elsif expects = 'neither' then
        perform timers.schedule_many(array[fresh, another]) from generate_series(1, 2);
        perform timers.schedule(fresh.timer_id, 'tap primer', 'saga', fresh.fire_at, mode => 'keep');
    end if;
end
$$;

create temporary table seen (outcome text, moved_wake boolean);

-- Makes the call once and says how the timer and the answer differ from the model: nothing if they do not.
create function pg_temp.difference(
    s state, w way, distance interval, expects text, id uuid, home text, lane text) returns text
language plpgsql as $$
declare
    base timestamptz;
    offered timestamptz;
    delay interval;
    max_wait interval;
    old timers.timer;
    new timers.timer;
    model timers.timer;
    claim_before text;
    earliest timestamptz;
    latest timestamptz;
    answer text;
    wanted text;
    moves boolean;
begin
    perform timers.schedule(id, home, 'saga', clock_timestamp() + interval '90 minutes', '"old"');
    execute s.how using id, home;
    perform pg_temp.prime(expects);
    old := timers.lookup(id);
    select c::text into claim_before from timers.claim c where c.timer_id = id;
    base := coalesce(old.fire_at, clock_timestamp() + interval '2 hours');
    offered := base + distance;
    delay := offered - clock_timestamp();
    max_wait := delay + w.bound;
    -- A debounce goes ahead of the clock, and neither it nor a delay can offer the same instant.
    if (w.call in ('debounce', 'schedule_in') and distance = '0') or (w.call = 'debounce' and delay < '10 minutes') then
        return null;
    end if;

    earliest := clock_timestamp();
    answer := case w.call
        when 'schedule' then timers.schedule(id, lane, 'new saga', offered, '"new"', w.mode)::text
        when 'schedule_in' then timers.schedule_in(id, lane, 'new saga', delay, '"new"', w.mode)::text
        when 'schedule_once' then timers.schedule_once(id, lane, 'new saga', offered, '"new"')::text
        when 'schedule_many' then (select m.outcome::text from timers.schedule_many(
            array[(id, lane, 'new saga', offered, '"new"')::timers.timer_request], w.mode) m)
        else timers.debounce(id, lane, 'new saga', delay, '"new"', max_wait)::text end;
    latest := clock_timestamp();
    new := timers.lookup(id);

    -- The model. Where the clock of the call counts, what it came to is taken over if that can have been.
    moves := case w.mode when 'replace' then true when 'later' then offered > old.fire_at
                         when 'earlier' then offered < old.fire_at else false end;
    wanted := case when s.state = 'none' then 'inserted' when not s.movable then 'too_late'
                   when moves then 'rearmed' else 'kept' end;
    if w.call = 'schedule_once' then
        answer := case answer when 'true' then 'inserted' when 'false' then wanted end;
    end if;
    model := old;
    if wanted in ('inserted', 'rearmed') then
        if wanted = 'inserted' then
            model.timer_id := id;
            model.created_at := case when new.created_at between earliest and latest then new.created_at end;
            model.attempts := 0;
            model.forgiven := 0;
            model.status := 'scheduled';
        end if;
        model.process_manager := lane;
        model.correlation_id := 'new saga';
        model.payload := '"new"';
        model.updated_at := case when new.updated_at between earliest and latest then new.updated_at end;
        model.fire_at := case
            when w.bound < '0' and wanted = 'rearmed' then old.created_at + max_wait
            when w.bound < '0' and new.fire_at between earliest + max_wait and latest + max_wait then new.fire_at
            when w.call not in ('schedule_in', 'debounce') then offered
            when new.fire_at between earliest + delay and latest + delay then new.fire_at end;
        model.wake_at := case
            when old.process_manager = lane
                and (model.fire_at = old.fire_at or model.fire_at >= greatest(old.wake_at, latest)) then old.wake_at
            when model.fire_at > latest then model.fire_at
            when new.wake_at between earliest and latest then new.wake_at end;
    end if;
    insert into seen values (wanted, new.wake_at <> old.wake_at);
    return concat_ws('; ',
        case when answer is distinct from wanted then format('answered %s instead of %s', answer, wanted) end,
        case when new is distinct from model then format('is %s instead of %s', to_jsonb(new), to_jsonb(model)) end,
        case when (select c::text from timers.claim c where c.timer_id = id) is distinct from claim_before
             then 'changed the claim' end,
        case when exists (select from timers.outbox) then 'fired something' end);
end
$$;

create function pg_temp.differences(s state, w way) returns text
language plpgsql as $$
declare
    id uuid := gen_random_uuid();
    home text := format('tap matrix %s %s', w.place, s.place);
    c record;
    difference text;
begin
    perform timers.configure(home, 'external');
    for c in select o.distance, e.expects, e.lane
             from offer o, (values ('new', home), ('there', home), ('neither', home), ('there', home || ' elsewhere'))
                 e (expects, lane)
    loop
        difference := pg_temp.difference(s, w, c.distance, c.expects, id, home, c.lane);
        delete from timers.claim where timer_id = id;
        delete from timers.timer where timer_id = id;
        if difference <> '' then
            return format('offered %s for "%s", expecting %s: %s', c.distance, c.lane, c.expects, difference);
        end if;
    end loop;
    return null;
end
$$;
select is(pg_temp.differences(s, w), null, pg_temp.call_of(w) || ' against ' || s.state)
from way w, state s order by w.place, s.place;

-- The matrix was worth something.
select bag_eq('select distinct outcome from seen', $$ values ('inserted'), ('rearmed'), ('kept'), ('too_late') $$,
    'every outcome was seen');
select bag_eq($$ select distinct moved_wake from seen where outcome = 'rearmed' $$, 'values (true), (false)',
    'of those that were moved some moved in the due index, too, and others did not');

select * from finish();
rollback;

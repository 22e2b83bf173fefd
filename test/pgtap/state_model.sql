-- Intent: over thousands of random calls every function answers, and leaves every timer, as a plain-SQL model of the
-- state machine says. The seed is printed; run with --set seed=N to see a failure again.
\if :{?seed}
\else
select (extract(epoch from clock_timestamp()) * 1000)::bigint % 1000000 as seed \gset
\endif
begin;
select plan(9);
select diag('seed ' || :seed);
select setseed(:seed / 1000000.0) \g /dev/null

select timers.configure('tap model', 'external', max_attempts => 3) \g /dev/null

-- The model: a row per id that was ever scheduled.
create temporary table model (
    id uuid primary key, status timers.timer_status not null, fire_at timestamptz not null, payload jsonb not null,
    correlation_id text not null, attempts integer not null, forgiven integer not null default 0, token uuid,
    event_id uuid, last_error text);
create temporary table problem (call text, wanted text, found text);
create temporary table called (name text, result text);

create function pg_temp.say(call text, wanted text, got text) returns void
language plpgsql as $$
begin
    insert into called (name, result) values (split_part(call, ' ', 1), coalesce(got, 'null'));
    if wanted is distinct from got then
        insert into problem (call, wanted, found) values (call, wanted, got);
    end if;
end
$$;

-- The SQLSTATE that a call raises, or its result.
create function pg_temp.result(call text) returns text
language plpgsql as $$
declare
    r text;
begin
    execute call into r;
    return r;
exception when sqlstate 'TM001' or sqlstate 'TM002' or sqlstate 'TM003' or sqlstate 'TM004' or sqlstate 'TM005' then
    return sqlstate;
end
$$;

-- A page's timers, in their order, whatever its size.
create function pg_temp.walk(call text) returns uuid[]
language plpgsql as $$
declare
    met uuid[] := '{}';
    page uuid[];
    behind text;
begin
    loop
        execute format('select array_agg(f.timer_id), (array_agg(f.cursor))[count(*)]
                        from timers.%s(%L, page_size => $1, cursor => $2) f', call, 'tap model')
        into page, behind using 1 + floor(random() * 9)::integer, behind;
        exit when page is null;
        met := met || page;
    end loop;
    return met;
end
$$;

create temporary table claimed of timers.claimed_timer;

create function pg_temp.step() returns void
language plpgsql as $$
declare
    which uuid := ('00000000-0000-4000-a001-' || lpad(floor(random() * 20)::text, 12, '0'))::uuid;
    -- Times on either side of `as_of`, none of them now.
    offered timestamptz := timestamptz '2090-01-01 00:01+00' + (floor(random() * 40) - 20) * interval '1 hour';
    till timestamptz := '2090-01-01 00:00+00';
    content jsonb := to_jsonb(floor(random() * 1000));
    saga text := 'saga ' || floor(random() * 3);
    event uuid := gen_random_uuid();
    how timers.rearm_mode := (enum_range(null::timers.rearm_mode))[1 + floor(random() * 4)];
    some_token uuid;
    m model;
    known boolean;
    wanted text;
    answer text;    -- of whoever presents the token of a firing
    resumed text;   -- of whoever presents that of a resume
    guarded boolean;
    moved boolean;
    claimed record;
    action integer := floor(random() * 140);
begin
    -- What is held or dead is met often, and what has ended goes soon, though it would be most of all there is.
    if random() < 0.3 + 0.3 * (action >= 88)::integer then
        select coalesce((array_agg(o.id order by random()))[1], which) into which
        from model o
        where (o.status in ('fired', 'cancelled')) = (action between 88 and 96) and o.status <> 'scheduled';
    end if;
    select * into m from model where model.id = which;
    known := found;
    -- A token: that of the claim, now and then another.
    some_token := case when random() < 0.7 then coalesce(m.token, gen_random_uuid()) else gen_random_uuid() end;
    answer := case when not known then 'TM001' when m.status = 'firing' and m.token = some_token then 'true'
                   else 'TM003' end;
    resumed := case when not known then 'TM001' when m.status = 'resuming' and m.token = some_token then ''
                    else 'TM003' end;
    guarded := known and m.status = 'resuming';

    if action < 30 then
        moved := known and m.status = 'scheduled' and case how
            when 'replace' then true when 'later' then offered > m.fire_at
            when 'earlier' then offered < m.fire_at else false end;
        wanted := case when not known then 'inserted' when m.status <> 'scheduled' then 'too_late'
                       when moved then 'rearmed' else 'kept' end;
        perform pg_temp.say(format('schedule %s %s', how, which), wanted,
                            timers.schedule(which, 'tap model', saga, offered, content, how)::text);
        if not known or moved then
            insert into model as o (id, status, fire_at, payload, correlation_id, attempts)
            values (which, 'scheduled', offered, content, saga, 0)
            on conflict on constraint model_pkey do update
            set fire_at = excluded.fire_at, payload = excluded.payload, correlation_id = excluded.correlation_id;
        end if;
    elsif action < 35 then
        perform pg_temp.say(format('schedule_once %s', which), (not known)::text,
                            timers.schedule_once(which, 'tap model', saga, offered, content)::text);
        if not known then
            insert into model (id, status, fire_at, payload, correlation_id, attempts)
            values (which, 'scheduled', offered, content, saga, 0);
        end if;
    elsif action < 39 then
        perform pg_temp.say(format('cancel %s', which),
            case when guarded then 'TM002' else (known and m.status in ('scheduled', 'firing'))::text end,
            pg_temp.result(format('select timers.cancel(%L)::text', which)));
        update model set status = 'cancelled', token = null where model.id = which
            and status in ('scheduled', 'firing');
    elsif action < 43 then
        select count(*)::text into wanted from model where correlation_id = saga and status in ('scheduled', 'firing');
        perform pg_temp.say(format('cancel_correlation %s', saga), wanted,
            timers.cancel_correlation('tap model', saga)::text);
        update model set status = 'cancelled', token = null where correlation_id = saga
            and status in ('scheduled', 'firing');
    elsif action < 58 then
        -- The first that is due and below its ceiling, in the order of fire_at; what stands before it is at it.
        claimed := null;
        select * into claimed from timers.claim_due('tap model', 1, '1 hour', till);
        perform pg_temp.say('claim_due', (select min(d.fire_at)::text from model d
                                          where d.status = 'scheduled' and d.fire_at <= till
                                            and d.attempts - d.forgiven < 3),
                            claimed.fire_at::text);
        update model set status = 'firing', attempts = attempts + 1, token = claimed.claim_token
        where model.id = claimed.timer_id;
        -- Those at their ceiling that the claim came by are dead; which ones it met is its own business.
        update model o
        set status = 'dead', attempts = o.attempts + 1, last_error = 'timer exceeded attempt ceiling of 3'
        from timers.timer t
        where t.timer_id = o.id and t.status = 'dead' and o.status = 'scheduled' and o.fire_at <= till
            and o.attempts - o.forgiven = 3;
    elsif action < 66 then
        wanted := answer;
        perform pg_temp.say(format('mark_fired %s', which), wanted,
                            pg_temp.result(format('select timers.mark_fired(%L, %L, %L)::text', which, event,
                                                  some_token)));
        update model set status = 'fired', token = null, event_id = event where model.id = which and wanted = 'true';
    elsif action < 68 then
        wanted := case when guarded then 'TM002' else (known and m.status = 'firing')::text end;
        perform pg_temp.say(format('mark_fired without token %s', which), wanted,
            pg_temp.result(format('select timers.mark_fired(%L, %L)::text', which, event)));
        update model set status = 'fired', token = null, event_id = event where model.id = which and wanted = 'true';
    elsif action < 76 then
        wanted := answer;
        perform pg_temp.say(format('release %s', which), wanted,
                            pg_temp.result(format('select timers.release(%L, %L, %L, %L)::text', which, some_token,
                                                  offered, saga)));
        update model set status = 'scheduled', token = null, fire_at = offered, last_error = saga
        where model.id = which and wanted = 'true';
    elsif action < 82 then
        wanted := answer;
        perform pg_temp.say(format('renew %s', which), wanted,
                            pg_temp.result(format('select (timers.renew(%L, %L, ''1 hour'') > now())::text', which,
                                                  some_token)));
    elsif action < 85 then
        select count(*)::text into wanted from model where status = 'firing';
        perform pg_temp.say('requeue_stuck', wanted,
            timers.requeue_stuck(as_of => clock_timestamp() + interval '2 hours')::text);
        update model set status = 'scheduled', token = null where status = 'firing';
    elsif action < 86 then
        perform pg_temp.say('requeue_stuck nothing', '0', timers.requeue_stuck()::text);
    elsif action < 88 then
        perform pg_temp.say('fire_due nothing of what applications claim', '0', timers.fire_due()::text);
    elsif action < 97 then
        -- Its row is gone: the id starts afresh.
        delete from timers.timer where timer_id = which;
        delete from timers.claim where timer_id = which;
        delete from model where model.id = which;
    elsif action < 103 then
        wanted := case when guarded then 'TM002' else (known and m.status in ('scheduled', 'firing'))::text end;
        perform pg_temp.say(format('dead_letter %s', which), wanted,
                            pg_temp.result(format('select timers.dead_letter(%L, %L)::text', which, saga)));
        update model set status = 'dead', token = null, last_error = saga where model.id = which and wanted = 'true';
    elsif action < 105 then
        wanted := case when guarded then 'TM002' else (known and m.status = 'firing')::text end;
        perform pg_temp.say(format('requeue %s', which), wanted,
                            pg_temp.result(format('select timers.requeue(%L)::text', which)));
        update model set status = 'scheduled', token = null where model.id = which and wanted = 'true';
    elsif action < 108 then
        wanted := case when guarded then 'TM002' else (known and m.status = 'dead')::text end;
        perform pg_temp.say(format('retry_dead %s', which), wanted,
                            pg_temp.result(format('select timers.retry_dead(%L, %L)::text', which, offered)));
        update model set status = 'scheduled', fire_at = offered, forgiven = attempts
        where model.id = which and wanted = 'true';
    elsif action < 120 then
        -- Now and then another number of attempts is expected.
        wanted := case when not known then 'TM001' when guarded then 'TM004' when m.status <> 'dead' then 'TM002'
                       when action < 110 then 'TM005' else m.attempts::text end;
        answer := pg_temp.result(format(
            'insert into claimed select * from timers.claim_dead(%L, ''1 hour'', ''tap model'', %s) returning attempts',
            which, coalesce(m.attempts, 0) + (action < 110)::integer));
        perform pg_temp.say(format('claim_dead %s', which), wanted, answer);
        update model set status = 'resuming', token = (select c.claim_token from claimed c)
        where model.id = which and wanted not like 'TM%';
        delete from claimed;
    elsif action < 124 then
        perform pg_temp.say(format('renew_resume %s', which), case resumed when '' then 'true' else resumed end,
            pg_temp.result(format('select (timers.renew_resume(%L, %L, ''1 hour'') > now())::text', which,
                                  some_token)));
    elsif action < 128 then
        perform pg_temp.say(format('complete_resume %s', which), resumed,
            pg_temp.result(format('select timers.complete_resume(%L, %L, %L)', which, some_token, event)));
        update model set status = 'fired', token = null, event_id = event where model.id = which and resumed = '';
    elsif action < 131 then
        perform pg_temp.say(format('park_resume %s', which), resumed,
            pg_temp.result(format('select timers.park_resume(%L, %L, %L)', which, some_token,
                                  case when action < 130 then saga end)));
        update model
        set status = 'dead', token = null, last_error = case when action < 130 then saga else last_error end
        where model.id = which and resumed = '';
    elsif action < 133 then
        perform pg_temp.say(format('cancel_resume %s', which), resumed,
            pg_temp.result(format('select timers.cancel_resume(%L, %L)', which, some_token)));
        update model set status = 'cancelled', token = null where model.id = which and resumed = '';
    elsif action < 134 then
        select count(*)::text into wanted from model where status = 'resuming';
        perform pg_temp.say('recover_expired_resumes', wanted,
            timers.recover_expired_resumes(clock_timestamp() + interval '2 hours')::text);
        update model set status = 'dead', token = null where status = 'resuming';
    elsif action < 136 then
        perform pg_temp.say('recover_expired_resumes nothing', '0', timers.recover_expired_resumes()::text);
    elsif action < 138 then
        select array_agg(o.id order by t.wake_at, o.id)::text into wanted
        from model o join timers.timer t on t.timer_id = o.id where o.status = any (timers.pending_statuses());
        perform pg_temp.say('find_pending page by page', coalesce(wanted, '{}'), pg_temp.walk('find_pending')::text);
    else
        select array_agg(o.id order by t.died_at, o.id)::text into wanted
        from model o join timers.timer t on t.timer_id = o.id where o.status = 'dead';
        perform pg_temp.say('find_dead page by page', coalesce(wanted, '{}'), pg_temp.walk('find_dead')::text);
    end if;

    -- Now and then everything is compared.
    if random() < 0.1 then
        insert into problem (call, wanted, found)
        select 'state after ' || action, w.r, f.r
        from (
            select format('%s %s %s %s %s %s %s %s %s', o.id, o.status, o.fire_at, o.payload, o.correlation_id,
                          o.attempts, o.event_id, o.last_error, o.status in ('dead', 'resuming'))
            from model o) w (r)
        full join (
            select format('%s %s %s %s %s %s %s %s %s', t.timer_id, t.status, t.fire_at, t.payload, t.correlation_id,
                          t.attempts, t.fired_event_id, t.last_error, t.died_at is not null)
            from timers.timer t where t.process_manager = 'tap model') f (r)
        on w.r = f.r
        where w.r is null or f.r is null;
        insert into problem (call, wanted, found)
        select 'claims after ' || action, w.token::text, f.token::text
        from (select o.token from model o where o.token is not null) w full join timers.claim f on f.token = w.token
        where w.token is null or f.token is null;
    end if;
    if exists (select from problem) then
        raise exception using errcode = 'TMSTP', message = (select string_agg(p::text, E'\n') from problem p);
    end if;
end
$$;

select lives_ok('select pg_temp.step() from generate_series(1, 8000)',
    'eight thousand random calls go as the model says');

-- The calls were worth something: each kind came with each of its answers.
select is_empty(
    $$ select w.name, w.result from (values
           ('schedule', 'inserted'), ('schedule', 'rearmed'), ('schedule', 'kept'), ('schedule', 'too_late'),
           ('schedule_once', 'true'), ('schedule_once', 'false'), ('cancel', 'true'), ('cancel', 'false'),
           ('mark_fired', 'true'), ('mark_fired', 'TM003'), ('release', 'true'), ('release', 'TM003'),
           ('renew', 'true'), ('renew', 'TM003'), ('cancel', 'TM002'), ('dead_letter', 'true'),
           ('dead_letter', 'TM002'), ('retry_dead', 'true'), ('retry_dead', 'TM002'), ('claim_dead', 'TM002'),
           ('claim_dead', 'TM004'), ('claim_dead', 'TM005'), ('renew_resume', 'true'), ('renew_resume', 'TM003'),
           ('complete_resume', ''), ('complete_resume', 'TM003'), ('park_resume', ''), ('park_resume', 'TM003'),
           ('cancel_resume', ''), ('cancel_resume', 'TM003')) w (name, result)
       where not exists (select from called c where c.name = w.name and c.result = w.result) $$,
    'every kind of answer was seen');
select cmp_ok((select count(*) from called where name = 'claim_due' and result <> 'null'), '>', 50::bigint,
    'many claims');
select cmp_ok((select count(*) from called where name = 'requeue_stuck' and result::bigint > 0), '>', 5::bigint,
    'many requeues');
select cmp_ok((select count(*) from called where name = 'claim_dead' and result not like 'TM%'), '>', 20::bigint,
    'many resumes');
select cmp_ok((select count(*) from called where name = 'recover_expired_resumes' and result::bigint > 0),
    '>', 2::bigint, 'several of them run out');
select cmp_ok((select count(*) from called where name in ('find_pending', 'find_dead') and length(result) > 100),
    '>', 10::bigint, 'pages of several timers');
select cmp_ok((select count(*) from called where name = 'cancel_correlation' and result::bigint > 1), '>', 2::bigint,
    'several cancelled at once');
select is((select count(*) from timers.outbox), 0::bigint, 'nothing of it went into the outbox');

select * from finish();
rollback;

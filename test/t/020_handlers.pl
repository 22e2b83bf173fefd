# A handler is called with its timer, as its role and with no more than that role's rights; a uuid completes the timer.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use HandlerServer;
use PostgreSQL::Test::Utils;
use Test::More;

my $server = HandlerServer->start_new('main', conf => 'durable_timers.handler_workers = 2');

subtest 'what it is given and what it returns' => sub {
    $server->sql("create table seen as select t.*, ''::text as by from timers.timer t with no data;
        grant insert on seen to app;
        create function public.in_sql(t timers.timer) returns uuid language sql as
        \$\$ insert into public.seen select (t).*, 'sql'; select timers.timer_id(t.timer_id, 'sql') \$\$;
        grant execute on function timers.timer_id to app");
    $server->handle_by('public.in_sql', 'in_sql');
    $server->add_handler('in_plpgsql', "insert into public.seen select t.*, 'plpgsql';
        return timers.timer_id(t.timer_id, 'plpgsql');");
    for my $language ('sql', 'plpgsql') {
        $server->sql("select timers.schedule(id('$language'), 'in_$language', '$language',
            '2001-02-03 04:05:06.789012Z',
            '{\"a\": [1, \"zwei\"]}')");
        $server->fate_ok($language, 'fired 1', "a handler in $language completes its timer");
        is($server->sql("select timer_id = id('$language'), process_manager, correlation_id, fire_at, payload, attempts,
            status, last_error is null and died_at is null and fired_event_id is null and created_at <= updated_at
            from seen where by = '$language'"),
            "t|in_$language|$language|2001-02-03 04:05:06.789012+00|{\"a\": [1, \"zwei\"]}|1|firing|t",
            'it was given the timer as it was claimed');
        is($server->sql("select fired_event_id = timers.timer_id(timer_id, '$language') from timers.timer
            where timer_id = id('$language')"), 't', 'its uuid is the event id');
    }
    is($server->sql('select count(*) from timers.claim'), '0', 'the claims are gone');
    is($server->sql('select count(*) from timers.outbox'), '0', 'nothing goes into the outbox');
};

subtest 'whom it runs as' => sub {
    $server->sql('create role "Other App" login; grant insert on effect to "Other App"');
    $server->sql('create table secret (n integer);
        create table "app only" (n integer); grant insert on "app only" to app');
    my $who = "call public.took_effect(t, current_user || ', ' || current_setting('search_path'));";
    $server->add_handler('who', "$who return gen_random_uuid();");
    $server->add_handler('who_else', "$who return gen_random_uuid();", run_as => '"Other App"');
    $server->sql("select plan('app', '0', 'who'), plan('other', '0', 'who_else')");
    $server->fate_ok($_, 'fired 1', "$_ is handled") for 'app', 'other';
    is($server->sql("select effects('app')"), 'app 1 app, pg_catalog, pg_temp',
        'as its role, with a fixed search_path');
    is($server->sql("select effects('other')"), 'other 1 Other App, pg_catalog, pg_temp', 'and so another');

    # The calling role's own rights, not the worker's.
    my %refused = (
        'another role\'s table' => [ 'insert into public.secret values (1)', 'permission denied for table secret' ],
        'a table of app, as another role' => [ 'insert into public."app only" values (1)',
            'permission denied for table app only', run_as => '"Other App"' ],
        'set role' => [ 'set role postgres', 'cannot set parameter "role" within security-definer function' ],
        'set local role' => [ 'set local role postgres',
            'cannot set parameter "role" within security-definer function' ],
        'reset role' => [ 'reset role', 'cannot set parameter "role" within security-definer function' ],
        'set session authorization' => [ 'set session authorization postgres',
            'cannot set parameter "session_authorization" within security-definer function' ],
        'reset session authorization' => [ 'reset session authorization',
            'cannot set parameter "session_authorization" within security-definer function' ],
        'set_config of the role' => [ "perform set_config('role', 'postgres', false)",
            'cannot set parameter "role" within security-definer function' ],
        'a temporary table' => [ 'create temporary table mine (n integer)',
            'cannot create temporary table within security-restricted operation' ],
        'listen' => [ 'listen something', 'cannot execute LISTEN within security-restricted operation' ],
        'commit' => [ 'commit', 'invalid transaction termination' ],
        'an unqualified name' => [ "perform plan('x', '0')", 'function plan(unknown, unknown) does not exist' ]);
    my $n = 0;
    for my $what (sort keys %refused) {
        my ($statement, $error, %settings) = @{ $refused{$what} };
        my $lane = 'refused_' . ++$n;
        $server->add_handler($lane, "$statement; return gen_random_uuid();", max_attempts => 2, retry_delay => '1 h',
            %settings);
        $server->sql("select plan('$lane', '0', '$lane')");
        $server->fate_ok($lane, "scheduled 1: $error", "refused: $what");
    }
    is($server->sql("select (select count(*) from secret) + (select count(*) from \"app only\")"), '0', 'to no effect');
};

subtest 'deferred triggers do not run as somebody else' => sub {
    $server->sql("create table app_table (n integer); alter table app_table owner to app;
        create function public.spy() returns trigger language plpgsql as
        \$\$ begin
            insert into public.effect (name, attempt, note) values ('spy', 0, current_user);
            return null;
        end \$\$;
        alter function public.spy() owner to app;
        create constraint trigger spy after insert on app_table deferrable initially deferred
        for each row execute function public.spy()");
    $server->add_handler('deferring', 'insert into public.app_table values (1); return gen_random_uuid();',
        retry_delay => '1 h');
    $server->add_handler('immediate', 'set constraints all immediate; insert into public.app_table values (1);
        return gen_random_uuid();');
    $server->sql("select plan('deferring', '0', 'deferring')");
    $server->fate_ok('deferring', 'scheduled 1: cannot fire deferred trigger within security-restricted operation',
        'a deferred trigger is refused');
    is($server->sql("select effects('spy')"), '', 'it did not run');
    $server->sql("select plan('immediate', '0', 'immediate')");
    $server->fate_ok('immediate', 'fired 1', 'an immediate one is not');
    is($server->sql("select effects('spy')"), 'spy 0 app', 'it ran as the role');
};

subtest 'what a handler leaves behind in its worker' => sub {
    my $database = $server->new_database('traces');
    $server->sql("alter system set durable_timers.handler_workers = 1; select pg_reload_conf()");
    my $set = "set lock_timeout = '1 ms'; set row_security = off; set timezone = 'Asia/Tokyo';
        perform set_config('custom.trace', 'left', false); perform pg_advisory_lock(77);";
    my $look = "call public.took_effect(t, concat_ws(' ', current_setting('lock_timeout'),
        current_setting('row_security'), current_setting('timezone'),
        coalesce(nullif(current_setting('custom.trace', true), ''), 'nothing'), locks, pg_backend_pid()));
        return gen_random_uuid();";
    my $locks = "locks bigint := (select count(*) from pg_locks where locktype = 'advisory');";
    $server->add_handler('looking', $look, declare => $locks, database => $database, run_as => 'stranger');
    $server->add_handler('setting', "$set return gen_random_uuid();", database => $database);
    $server->add_handler('failing', "$set raise exception 'failed';", database => $database, retry_delay => '1 h');
    $server->sql("select plan('before', '0', 'looking')", $database);
    $server->fate_ok('before', 'fired 1', 'one looks', database => $database);
    my $before = $server->sql("select note from effect where name = 'before'", $database);
    like($before, qr/^0 on UTC nothing 0 \d+$/, 'it sees the defaults');
    for my $lane ('setting', 'failing') {
        $server->sql("select plan('$lane', '0', '$lane')", $database);
        $server->wait_until("select attempts = 1 and status <> 'firing' from timers.timer
            where correlation_id = '$lane'",
            database => $database);
        $server->sql("select plan('after $lane', '0', 'looking')", $database);
        $server->fate_ok("after $lane", 'fired 1', "one looks after $lane", database => $database);
        is($server->sql("select note from effect where name = 'after $lane'", $database), $before,
            'the same worker has neither settings nor locks of it');
    }
    $server->sql("alter system reset durable_timers.handler_workers; select pg_reload_conf()");
};

subtest 'rights and objects that go away' => sub {
    $server->add_handler('going', 'call public.took_effect(t); return gen_random_uuid();', retry_delay => '20 ms',
        retry_factor => 1);
    my %trouble = (
        'the function is gone' => [ 'alter function public.going rename to gone',
            'handler "public.going" does not exist', 'alter function public.gone rename to going' ],
        'it returns something else' => [ 'drop function public.going;
            create function public.going(t timers.timer) returns text language sql as
            $$ select \'neither a uuid nor fit for one\' $$', '.*uuid.*', 'drop function public.going;
            create function public.going(t timers.timer) returns uuid language plpgsql as
            $$ begin call public.took_effect(t); return gen_random_uuid(); end $$' ],
        'EXECUTE is revoked' => [ 'revoke execute on function public.going from public',
            'permission denied for function public.going', 'grant execute on function public.going to public' ],
        'the role is gone' => [ 'alter role app rename to former_app', 'role "app" does not exist',
            'alter role former_app rename to app' ]);
    for my $what (sort keys %trouble) {
        my ($break, $error, $mend) = @{ $trouble{$what} };
        $server->sql("$break; select plan('$what', '0', 'going')");
        $server->await_ok("select fate('$what') ~ '^(scheduled|firing) ([2-9]|\\d\\d+): $error\$'",
            "$what: it is tried again");
        $server->sql($mend);
        $server->await_ok("select fate('$what') ~ '^fired '", 'and completes when that is mended');
        is($server->sql("select count(*) from effect where name = '$what'"), '1', 'with one effect');
    }
};

done_testing();

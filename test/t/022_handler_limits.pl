# A handler that hangs, ends its process or crashes the server is stopped at its limits, and in nobody's way till then.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use HandlerServer;
use PostgreSQL::Test::Utils;
use Test::More;

my $server = HandlerServer->start_new('main', conf => "durable_timers.handler_workers = 4\nrestart_after_crash = on");
my $timeout = 'canceling statement due to statement timeout';

# As a user would: with the server's own headers.
my $library = $server->basedir . '/c_handler.so';
chomp(my $headers = `pg_config --includedir-server`);
system_or_bail('gcc', '-shared', '-fPIC', "-I$headers", '-o', $library, "$FindBin::RealBin/lib/c_handler.c");
$server->sql("create function public.in_c(t timers.timer) returns uuid language c as '$library', 'c_handler'");

# They lose their workers while the rest of the tests runs: a claim holds for handler_timeout and some seconds.
my @ends = ('fatal', 'exit', 'terminate');
my $ending = $server->new_database('ending');
$server->sql("create function public.in_c(t timers.timer) returns uuid language c as '$library', 'c_handler'", $ending);
$server->handle_by('public.in_c', 'ending', retry_delay => '1 ms', max_attempts => 3, lease => '1 s',
    handler_timeout => '100 ms', database => $ending);
$server->sql("select plan(name, '0', 'ending') from unnest('{@{[join ',', @ends]}}'::text[]) name", $ending);

subtest 'the time limit' => sub {
    my %endless = (
        sleeping => 'perform pg_sleep(3600);',
        looping => 'loop end loop;',
        counting => 'perform count(*) from generate_series(1, 1000000) a, generate_series(1, 1000000) b;',
        catching => 'begin perform pg_sleep(3600); exception when others then null; end;',
        waiting => 'lock table public.locked;');
    $server->sql("create table locked (); grant all on locked to app;
        create function public.sleeping_in_sql(t timers.timer) returns uuid language sql as
        \$\$ select pg_sleep(3600); select t.timer_id \$\$");
    my $holder = $server->session;
    $holder->query_safe('begin; lock table locked');
    my %settings = (handler_timeout => '1 s', max_attempts => 1);
    $server->add_handler($_, "call public.took_effect(t); $endless{$_} return t.timer_id;",
        %settings) for keys %endless;
    $server->handle_by('public.sleeping_in_sql', 'sleeping_in_sql', %settings);
    my @lanes = sort 'sleeping_in_sql', keys %endless;
    $server->sql("select plan('$_', '0', '$_')") for @lanes;
    $server->fate_ok($_, 'dead 1: timer exceeded attempt ceiling of 1', "$_ for ever ends at the limit") for @lanes;
    is($server->sql('select effects()'), '', 'without effect');
    my @failed = slurp_file($server->logfile) =~ /process manager "(\w+)" failed: $timeout/g;
    is(join(' ', sort @failed), join(' ', @lanes), 'the log says why');
    $holder->quit;
    $server->add_handler('brief', 'perform pg_sleep(0.01); return t.timer_id;', handler_timeout => '1 s');
    $server->sql("select count(plan('brief ' || n, '0', 'brief')) from generate_series(1, 150) n");
    $server->await_ok("select count(*) from timers.timer where process_manager = 'brief' and status = 'fired'",
        'one that is within it is not hit by the limits of those before it', expected => '150');
    is($server->sql("select max(attempts) from timers.timer where process_manager = 'brief'"), '1', 'not once');
};

subtest 'a handler that will not be interrupted' => sub {
    # PL/pgSQL lets a handler catch the cancel.
    my $database = $server->new_database('stubborn');
    $server->add_handler('stubborn', 'loop begin perform pg_sleep(3600); exception when query_canceled then null; end;
        end loop;', database => $database, handler_timeout => '1 s', lease => '2 s', max_attempts => 2);
    $server->sql("select plan('stubborn', '0', 'stubborn')", $database);
    $server->await_ok("select status from timers.lookup(id('stubborn'))", 'comes to its ceiling', expected => 'dead',
        database => $database, seconds => 60);
    $server->await_ok('select handlers_running()', 'and is stopped', expected => '0', database => $database);
};

subtest 'the limit of the server stands in for one that is left open' => sub {
    $server->sql("alter system set durable_timers.handler_timeout = '700 ms'; select pg_reload_conf()");
    $server->wait_until("select current_setting('durable_timers.handler_timeout')", expected => '700ms');
    $server->add_handler('open', 'perform pg_sleep(3600); return t.timer_id;', retry_delay => '1 h');
    $server->sql("select plan('open', '0', 'open')");
    $server->fate_ok('open', "scheduled 1: $timeout", 'it is interrupted');
    $server->sql("alter system reset durable_timers.handler_timeout; select pg_reload_conf()");
    $server->wait_until("select current_setting('durable_timers.handler_timeout')", expected => '1min');
};

subtest 'a lease that ends before the handler does' => sub {
    my $database = $server->new_database('slow');
    $server->add_handler('slow', 'call public.took_effect(t); perform pg_sleep(3); return t.timer_id;', lease => '1 s',
        handler_timeout => '20 s', database => $database);
    $server->sql("select plan('slow', '0', 'slow')", $database);
    $server->await_ok("select status from timers.lookup(id('slow'))", 'it completes', expected => 'fired',
        database => $database);
    is($server->sql("select fate('slow') || ', ' || effects('slow')", $database), 'fired 1, slow 1',
        'with its first attempt');
};

subtest 'handlers that hang' => sub {
    my $database = $server->new_database('hanging');
    $server->add_handler('hang', 'perform pg_sleep(3600); return t.timer_id;', database => $database,
        handler_timeout => '1 h');
    $server->add_handler('quiet', 'return t.timer_id;', database => $database);
    $server->sql("select plan('hang ' || n, '0', 'hang') from generate_series(1, 20) n", $database);
    # All workers that one lane gets.
    $server->wait_until('select handlers_running() >= 3', database => $database);
    for my $n (1 .. 3) {
        $server->sql("select plan('quiet $n', '0', 'quiet'), plan('event $n', '0')", $database);
        $server->delivered_ok("event $n", 'the outbox does not wait for them', database => $database, seconds => 5);
        $server->fate_ok("quiet $n", 'fired 1', 'nor does another handler', database => $database, seconds => 5);
    }
    is($server->sql("select count(*) from timers.timer where process_manager = 'hang' and status = 'fired'", $database),
        '0', 'they still hang');
    $server->sql('drop database hanging');
};

subtest 'a handler in C' => sub {
    $server->handle_by('public.in_c', 'c', retry_delay => '1 h', lease => '1 h');
    $server->sql("select plan(name, '0', 'c') from unnest('{ordinary,pending,error}'::text[]) name");
    $server->fate_ok('ordinary', 'fired 1', 'completes its timer');
    is($server->sql("select fired_event_id = timer_id from timers.timer where correlation_id = 'ordinary'"), 't',
        'with its uuid');
    $server->fate_ok('pending', 'firing 1', 'may leave it to others');
    $server->fate_ok('error', 'scheduled 1: an error in C', 'may fail');
};

subtest 'a handler whose process somebody ends' => sub {
    $server->add_handler('terminated', 'perform pg_sleep(3600); return t.timer_id;', retry_delay => '1 h');
    $server->sql("select plan('terminated', '0', 'terminated')");
    my $pid = $server->sleeping_handler;
    $server->sql("select pg_terminate_backend($pid)");
    $server->await_ok("select fate('terminated') ~ '^scheduled 1: .*cancel'", 'has failed');
    $server->sql("select plan('after', '0', 'brief')");
    $server->fate_ok('after', 'fired 1', 'and others go on');
};

subtest 'a handler that ends its process' => sub {
    $server->await_ok("select status || ' ' || last_error from timers.lookup(id('$_'))", "$_: its timer dies",
        database => $ending, expected => 'dead timer exceeded attempt ceiling of 3', seconds => 90) for @ends;
    is($server->sql("select min(attempts) >= 3 and max(attempts) <= 4 from timers.timer", $ending), 't',
        'when its attempts are used up');
};

# Every crash restarts the server; in between the timers of others fire.
subtest 'a handler that crashes the server' => sub {
    my $log = -s $server->logfile;
    for my $case ([ 'crash', 2 ], [ 'segmentation fault', 1 ]) {
        my ($how, $ceiling) = @$case;
        $server->handle_by('public.in_c', 'crashing', max_attempts => $ceiling, lease => '1 s',
            handler_timeout => '100 ms');
        # The answer may be lost with the server.
        $server->psql('postgres', "select plan('$how', '0', 'crashing')");
        $server->await_ok("select status || ' ' || last_error from timers.lookup(id('$how'))", "$how: its timer dies",
            expected => "dead timer exceeded attempt ceiling of $ceiling", seconds => 60);
    }
    my @crashes = slurp_file($server->logfile, $log) =~ /handler" \(PID \d+\) was terminated by signal (\d+)/g;
    is(join(' ', @crashes), '9 9 11', 'after so many crashes');
    $server->sql("select plan('survivor', '0', 'brief')");
    $server->fate_ok('survivor', 'fired 1', 'and others go on');
};

subtest 'kill -9 while a handler works' => sub {
    $server->add_handler('killed', "call public.took_effect(t); if t.attempts = 1 then perform pg_sleep(3600); end if;
        return t.timer_id;", lease => '1 s', handler_timeout => '8 s');
    $server->sql("select plan('killed', '0', 'killed')");
    is(kill('KILL', $server->sleeping_handler), 1, 'the worker is killed');
    $server->fate_ok('killed', 'fired 2', 'the timer is tried again when its lease has ended');
    is($server->sql("select effects('killed')"), 'killed 2', 'nothing is left of the first attempt');
};

done_testing();

# Handler workers come when there is work, share it within its limits, leave when idle, and say so when they cannot.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use HandlerServer;
use PostgreSQL::Test::Utils;
use Test::More;

# One more than the lanes of a test may use at once, for the last worker is kept for lanes that have none.
my $server = HandlerServer->start_new('main', conf => "durable_timers.handler_workers = 7\nmax_worker_processes = 40");

# How many effects of a lane overlapped at most, as its handlers wrote it down.
sub most_at_once {
    my ($lane, $database) = @_;
    return $server->sql("select max(at_once) from (
        select (select count(*) from effect f where f.name like '$lane %'
                  and f.started_at <= e.started_at and f.ended_at > e.started_at) as at_once
        from effect e where e.name like '$lane %') o", $database);
}

# A handler that takes $ms milliseconds and writes down when it ran.
sub add_timed_handler {
    my ($lane, $ms, %settings) = @_;
    $server->add_handler($lane, "perform pg_sleep($ms / 1000.0);
        insert into public.effect (name, attempt, started_at, ended_at)
        values (t.correlation_id, t.attempts, started, clock_timestamp()); return t.timer_id;",
        declare => 'started timestamptz := clock_timestamp();', %settings);
    return;
}

sub all_fired_ok {
    my ($lane, $count, $name, %with) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $server->await_ok("select count(*) from timers.timer where process_manager = '$lane' and status = 'fired'",
        $name, expected => $count, %with);
}

subtest 'coming and going' => sub {
    my $database = $server->new_database('coming');
    add_timed_handler('work', 50, database => $database);
    is($server->count_handlers($database), 0, 'no worker without work');
    $server->sql("select plan('far', '1 h', 'work'), plan('event', '0')", $database);
    $server->delivered_ok('event', 'what needs no handler fires', database => $database);
    is($server->count_handlers($database), 0, 'without a handler worker');
    $server->sql("select plan('work ' || n, '100 ms', 'work') from generate_series(1, 60) n", $database);
    all_fired_ok('work', 60, 'workers come', database => $database);
    my $most = most_at_once('work', $database);
    cmp_ok($most, '>', 2, 'several');
    cmp_ok($most, '<=', 7, 'no more than there may be');
    is($server->sql("select count(*) from effect where attempt <> 1", $database), '0', 'nothing is done twice');
    $server->await_ok("select count(*) from pg_stat_activity where backend_type = 'durable_timers handler'
        and datname = '$database'", 'they leave when idle', expected => '0');
    $server->sql("select plan('again', '0', 'work')", $database);
    $server->fate_ok('again', 'fired 1', 'and come back', database => $database);
    $server->fate_ok('far', 'scheduled 0', 'for what is due', database => $database);
};

subtest 'max_concurrent' => sub {
    my $database = $server->new_database('limited');
    add_timed_handler("limit_$_", 30, max_concurrent => $_, database => $database) for 1 .. 3;
    $server->sql("select plan('limit_' || l || ' ' || n, n % 5 * interval '100 ms', 'limit_' || l)
        from generate_series(1, 3) l, generate_series(1, 40) n", $database);
    # Seen from outside: claims of each lane, as long as there are any.
    my $session = $server->session($database);
    my %most;
    my $deadline = time() + $TimerServer::patience;
    my $left = 1;
    while ($left > 0 && time() < $deadline) {
        my $sample = $session->query_safe("select process_manager, count(*) from timers.claim
            join timers.timer using (timer_id)
            group by 1 union all select 'left', count(*) from timers.timer where status <> 'fired'");
        my %seen = $sample =~ /^(\w+)\|(\d+)$/mg;
        $left = delete $seen{left};
        $most{$_} = !defined $most{$_} || $seen{$_} > $most{$_} ? $seen{$_} : $most{$_} for keys %seen;
    }
    $session->quit;
    is($left, '0', 'all are handled');
    for my $limit (1 .. 3) {
        is($most{"limit_$limit"}, $limit, "with a limit of $limit so many are claimed at once, at most");
        is(most_at_once("limit_$limit", $database), $limit, 'and so many handlers run at once');
    }
    is($server->sql("select count(*), max(attempts) from timers.timer", $database), '120|1', 'each once');

    # A limit that changes while there is work.
    add_timed_handler('changing', 100, max_concurrent => 1, database => $database);
    $server->sql("select plan('changing ' || n, '0', 'changing') from generate_series(1, 60) n", $database);
    $server->wait_until("select count(*) >= 3 from effect where name like 'changing %'", database => $database);
    $server->sql("select timers.configure('changing', max_concurrent => 4)", $database);
    $server->await_ok("select count(*) from timers.claim", 'a limit that is raised holds at once',
        database => $database,
        expected => '4');
    my $before = $server->sql("select timers.configure('changing', max_concurrent => 2); select clock_timestamp()",
        $database);
    $before =~ s/^\s+//;
    all_fired_ok('changing', 60, 'all are handled', database => $database);
    # Those that ran already may still run for a tenth of a second.
    is($server->sql("select max(at_once) from (
        select (select count(*) from effect f where f.name like 'changing %' and f.started_at <= e.started_at
                  and f.ended_at > e.started_at) as at_once
        from effect e where e.name like 'changing %' and e.started_at > '$before'::timestamptz + interval '300 ms') o",
        $database), '2', 'and so does one that is lowered');
};

subtest 'pause and unpause' => sub {
    my $database = $server->new_database('pausing');
    add_timed_handler('pausing', 20, database => $database);
    add_timed_handler('other', 20, database => $database);
    $server->sql("select plan(l || ' ' || n, '0', l)
        from unnest('{pausing,other}'::text[]) l, generate_series(1, 100) n", $database);
    $server->wait_until("select count(*) >= 5 from effect where name like 'pausing %'", database => $database);
    is($server->sql("select timers.pause('pausing')", $database), 't', 'a lane is paused amid its work');
    $server->await_ok("select count(*) from timers.timer where process_manager = 'pausing' and status = 'firing'",
        'what runs comes to its end', database => $database, expected => '0');
    my $done = $server->sql("select count(*) from effect where name like 'pausing %'", $database);
    cmp_ok($done, '<', 100, 'there is more to do');
    all_fired_ok('other', 100, 'the other lane goes on', database => $database);
    $server->sql("select plan('pausing meanwhile', '0', 'pausing'), plan('other fence', '0', 'other')", $database);
    $server->fate_ok('other fence', 'fired 1', 'also with what is new', database => $database);
    is($server->sql("select count(*) from effect where name like 'pausing %'", $database), $done,
        'the paused one rests');
    is($server->sql("select count(*) from timers.timer where process_manager = 'pausing' and status = 'scheduled'",
        $database),
        101 - $done, 'and keeps its timers');
    is($server->sql("select timers.unpause('pausing')", $database), 't', 'it is unpaused');
    all_fired_ok('pausing', 101, 'and handles the rest', database => $database);
    is($server->sql("select count(*), max(attempts), count(distinct timer_id) from timers.timer join effect
        on name = correlation_id where process_manager = 'pausing'", $database), '101|1|101', 'each once');
    # Paused from the first timer on, also across a restart.
    add_timed_handler('resting', 20, database => $database);
    $server->sql("select timers.pause('resting');
        select plan('resting 1', '0', 'resting'), plan('other 2', '0', 'other')", $database);
    $server->fate_ok('other 2', 'fired 1', 'one that was paused before its first timer', database => $database);
    $server->restart;
    $server->sql("select plan('other 3', '0', 'other')", $database);
    $server->fate_ok('other 3', 'fired 1', 'and across a restart', database => $database);
    $server->fate_ok('resting 1', 'scheduled 0', 'rests', database => $database);
    $server->sql("select timers.unpause('resting')", $database);
    $server->fate_ok('resting 1', 'fired 1', 'until it is unpaused', database => $database);
};

subtest 'a flood' => sub {
    my $database = $server->new_database('flooded');
    my $setting = 'durable_timers.handler_workers';
    $server->sql("alter system set $setting = 1; select pg_reload_conf()");
    $server->wait_until("select current_setting('$setting')", expected => '1');
    $server->add_handler('flood', 'perform pg_sleep(0.002); return t.timer_id;', database => $database);
    add_timed_handler('quiet', 1, database => $database);
    $server->sql("select count(plan('flood ' || n, '0', 'flood')) from generate_series(1, 10000) n", $database);
    my $flooded = "select count(*) from timers.timer where process_manager = 'flood' and status = 'fired'";
    $server->wait_until("select ($flooded) > 10", database => $database);
    for my $n (1 .. 5) {
        my $before = $server->sql($flooded, $database);
        $server->sql("select plan('quiet $n', '0', 'quiet')", $database);
        $server->fate_ok("quiet $n", 'fired 1', 'another lane takes its turn', database => $database, seconds => 5);
        cmp_ok($server->sql($flooded, $database), '>', $before, 'and so does the flood');
    }
    cmp_ok($server->sql($flooded, $database), '<', 10000, 'which goes on');
    $server->sql("alter system reset $setting; select pg_reload_conf()");
    $server->wait_until("select current_setting('$setting')", expected => '7');
    $server->sql("drop database $database");
};

subtest 'handlers are configured for timers that are there' => sub {
    my $database = $server->new_database('late');
    $server->sql("select timers.configure('late', delivery => 'external');
        select plan('late ' || n, '0', 'late') from generate_series(1, 3) n", $database);
    add_timed_handler('late', 1, database => $database);
    all_fired_ok('late', 3, 'they are handled at once', database => $database, seconds => 10);
    $server->sql("select timers.configure('late', delivery => 'outbox'), plan('late 4', '0', 'late')", $database);
    $server->delivered_ok('late 4', 'and delivered otherwise as soon as that is configured', database => $database);
};

subtest 'durable_timers.handler_workers' => sub {
    my $database = $server->new_database('counted');
    add_timed_handler('counted', 100, database => $database);
    my $setting = 'durable_timers.handler_workers';
    my $running = "select count(*) from timers.claim";
    $server->sql("alter system set $setting = 1; select pg_reload_conf(); select plan('counted ' || n, '0', 'counted')
        from generate_series(1, 100) n", $database);
    $server->wait_until("select count(*) >= 5 from effect where name like 'counted %'", database => $database);
    is(most_at_once('counted', $database), '1', 'one, if so set');
    $server->sql("alter system set $setting = 5; select pg_reload_conf()");
    # A lane leaves one to the others.
    $server->await_ok($running, 'more as soon as it is raised', database => $database, expected => '4');
    all_fired_ok('counted', 100, 'all are handled', database => $database);
    my $workers = "select count(*) from pg_stat_activity where backend_type = 'durable_timers handler'
        and datname = '$database'";
    $server->sql("alter system set $setting = 0; select pg_reload_conf()");
    $server->await_ok($workers, 'with none those that are idle leave', expected => '0');
    $server->sql("alter system set $setting = 1; select pg_reload_conf();
        select plan('counted more ' || n, '0', 'counted') from generate_series(1, 1000) n", $database);
    $server->wait_until("select count(*) >= 5 from effect where name like 'counted more %'", database => $database);
    $server->sql("alter system set $setting = 0; select pg_reload_conf()");
    $server->await_ok($workers, 'and those amid a backlog, after the handler that runs', expected => '0', seconds => 20);
    $server->sql("select timers.cancel_correlation('counted', 'counted more ' || n) from generate_series(1, 1000) n",
        $database);
    $server->sql("select plan('none', '0', 'counted'), plan('event', '0')", $database);
    $server->delivered_ok('event', 'events are delivered', database => $database);
    $server->fate_ok('none', 'scheduled 0', 'and handlers wait', database => $database);
    $server->sql("alter system reset $setting; select pg_reload_conf()");
    $server->fate_ok('none', 'fired 1', 'until there are some', database => $database);
};

subtest 'too few worker slots' => sub {
    # The launcher and a dispatcher, and not one more.
    my $small = HandlerServer->start_new('small', extension => 0,
        conf => "max_worker_processes = 2\nmax_logical_replication_workers = 0\nmax_parallel_workers = 0");
    $small->add_extension('postgres');
    $small->wait_until("select state from timers.workers where worker = 'dispatcher'", expected => 'running');
    my $log = -s $small->logfile;
    $small->add_handler('starved', 'call public.took_effect(t); return t.timer_id;');
    $small->sql("select plan('starved', '0', 'starved'), plan('event', '0')");
    $small->delivered_ok('event', 'events are delivered');
    $small->await_ok("select count(*) from timers.workers where state = 'no worker slot' and explanation is not null
        and worker = 'handler'", 'timers.workers says that handlers lack a worker', expected => '1');
    ok($small->wait_for_log(qr/WARNING:  durable_timers: no background worker slot is free.*database "postgres"/, $log),
        'and so does the log');
    $small->fate_ok('starved', 'scheduled 0', 'the timer waits');
    $small->adjust_conf('postgresql.conf', 'max_worker_processes', 8);
    $small->restart;
    $small->fate_ok('starved', 'fired 1', 'and is handled when there is one');
    $small->await_ok("select count(*) from timers.workers where state = 'no worker slot'", 'nothing is lacking',
        expected => '0');
};

done_testing();

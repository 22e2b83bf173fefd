# Where worker slots, places for databases or places for lanes are too few, the server says so, and recovers by itself.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use TimerServer;
use Test::More;

# The server says it once, not with every attempt.
sub said_once_ok {
    my ($server, $what, $name) = @_;
    $server->wait_for_log($what);
    my $times = () = slurp_file($server->logfile) =~ /$what/g;
    return is($times, 1, $name);
}

subtest 'worker slots' => sub {
    my $server = TimerServer->start_new('slots',
        conf => "max_worker_processes = 2\nmax_logical_replication_workers = 0");
    $server->wait_for_worker('dispatcher', 'postgres');
    $server->sql('create database late');
    $server->add_extension('late');
    $server->sql("select plan('due', '0')", 'late');
    $server->await_ok('select state from timers.workers', 'the database says that no slot is free', database => 'late',
        expected => 'no worker slot');
    like($server->sql('select explanation from timers.workers', 'late'), qr/max_worker_processes/, 'and why');
    # Several attempts later.
    my $since = $server->sql('select clock_timestamp()');
    $server->wait_for_clock("timestamptz '$since' + interval '3 s'");
    said_once_ok($server, qr/WARNING: .*no background worker slot is free.* "late" /, 'so does the log');
    is($server->sql('select count(*) from timers.outbox', 'late'), '0', 'its timers do not fire');
    $server->sql("select plan('here', '0')");
    $server->delivered_ok('here', 'the other database goes on');
    $server->sql('drop extension durable_timers');
    $server->delivered_ok('due', 'when a slot is free, they do', database => 'late');
    is($server->sql('select state from timers.workers', 'late'), 'running', 'and the database says so');
    $server->sql("select plan('next', '100 ms')", 'late');
    $server->delivered_ok('next', 'all is well then', database => 'late', seconds => 10);
    $server->stop;
};

subtest 'places for databases' => sub {
    # template1, postgres and one more.
    my $server = TimerServer->start_new('databases', conf => 'durable_timers.max_databases = 3');
    $server->new_database('third');
    $server->sql('create database fourth');
    $server->add_extension('fourth');
    $server->sql("select plan('due', '0')", 'fourth');
    is($server->sql('select state from timers.workers', 'fourth'), 'no place',
        'the database says that it has no place');
    like($server->sql('select explanation from timers.workers', 'fourth'), qr/max_databases/, 'and why');
    said_once_ok($server, qr/WARNING: .*there are more databases than durable_timers.max_databases/, 'so does the log');
    $server->sql("select plan('here', '0')", 'third');
    $server->delivered_ok('here', 'the other databases go on', database => 'third');
    is($server->sql('select count(*) from timers.outbox', 'fourth'), '0', 'its timers do not fire');
    is($server->sql('select timers.fire_due()', 'fourth'), '1', 'except by fire_due');
    $server->sql("select plan('due too', '0')", 'fourth');
    $server->sql('drop database third');
    $server->delivered_ok('due too', 'when a place is free, they do', database => 'fourth');
    $server->stop;
};

subtest 'places for lanes' => sub {
    my $server = TimerServer->start_new('lanes', conf => 'durable_timers.max_lanes = 2');
    my $lanes = 30;
    $server->sql("select plan('round $_ ' || n, n * interval '10 ms', 'lane ' || n) from generate_series(1, $lanes) n")
        for 1 .. 3;
    $server->await_ok("select count(*) || ' ' || count(distinct timer_id) from timers.outbox",
        'every lane is served', expected => $lanes * 3 . ' ' . $lanes * 3);
    my $session = $server->session;
    $session->query_safe("begin; select plan('slow', '0', 'lane 29'), plan('slow new', '0', 'a new lane')");
    $server->sql("select plan('quick ' || n, '0', 'lane ' || n) from generate_series(1, $lanes) n");
    $server->await_ok("select count(*) from timers.outbox where correlation_id like 'quick%'",
        'and so are timers committed at another time', expected => $lanes);
    $session->query_safe('commit');
    $server->delivered_ok($_, 'than scheduled', seconds => 10) for 'slow', 'slow new';
    $session->quit;
    $server->sql("select plan('restart ' || n, '1 s', 'lane ' || n) from generate_series(1, $lanes) n");
    $server->restart;
    $server->await_ok("select count(*) from timers.outbox where correlation_id like 'restart%'",
        'a restarted server serves them', expected => $lanes);
    is($server->sql('select count(*) - count(distinct timer_id) from timers.outbox'), '0',
        'nothing is delivered twice');
    # What was fired since the restart, which began all counts anew.
    $server->await_ok("select sum(value) from timers.metrics where name = 'timer.fired'", 'each is counted once',
        expected => $lanes);
    is($server->sql("select count(*) filter (where value is null) from timers.metrics
        where name = 'timer.fired' and process_manager is not null"), $lanes + 1 - 2,
        'those that have no place together');
};

done_testing();

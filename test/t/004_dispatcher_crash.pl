# Workers may die at any moment: they come back by themselves, no committed timer is lost, none is delivered twice.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0, conf => 'restart_after_crash = on');

# So many timers, due one after the other over some seconds.
my $timers = 2000;

sub plan_stream {
    my ($database) = @_;
    $server->sql("select plan('t' || n, n * interval '1.5 ms', 'lane ' || n % 3) from generate_series(1, $timers) n",
        $database);
    return;
}

sub wait_for_events {
    my ($database, $count) = @_;
    $server->wait_until("select count(*) >= $count from timers.outbox", database => $database);
    return;
}

sub all_delivered_ok {
    my ($database) = @_;
    $server->await_ok("select count(*) from timers.timer where status = 'scheduled'", 'every timer fires',
        database => $database, expected => '0');
    is($server->sql("select count(*) || ' ' || count(distinct timer_id) || ' ' || count(distinct event_id)
        from timers.outbox", $database), "$timers $timers $timers", 'each is in the outbox once');
    is($server->sql("select count(*) from timers.timer t join timers.outbox o using (timer_id)
        where t.status = 'fired' and t.fired_event_id = o.event_id and o.attempts = 1", $database),
        $timers, 'and the timer agrees with its event');
    return;
}

subtest 'kill -9 of the dispatcher while it fires' => sub {
    for my $round (1, 2) {
        my $database = $server->new_database("killed_$round");
        plan_stream($database);
        wait_for_events($database, 0.1 * $timers);
        my $dispatcher = $server->wait_for_worker('dispatcher', $database);
        my $log = -s $server->logfile;
        cmp_ok($server->sql('select count(*) from timers.outbox', $database), '<', $timers, 'there is more to fire');
        is(kill('KILL', $dispatcher), 1, 'the dispatcher is killed');
        # All of the server goes down with it and comes up again.
        $server->wait_for_log(qr/all server processes terminated; reinitializing/, $log);
        $server->wait_until('select true');
        all_delivered_ok($database);
    }
};

subtest 'kill -9 of the dispatcher between a claim and its acknowledgement' => sub {
    my $database = $server->new_database('unacknowledged');
    $server->sql("select timers.configure('calls', delivery => 'notify', channel => 'c', lease => '2 s');
        select plan('call', '0', 'calls')", $database);
    $server->wait_until("select status('call')", database => $database, expected => 'firing');
    my $log = -s $server->logfile;
    is(kill('KILL', $server->wait_for_worker('dispatcher', $database)), 1, 'the dispatcher is killed');
    $server->wait_for_log(qr/all server processes terminated; reinitializing/, $log);
    $server->await_ok("select max(attempts) > 1 from timers.timer", 'the timer is claimed again when its lease is over',
        database => $database);
};

subtest 'the dispatcher is terminated while it fires' => sub {
    my $database = $server->new_database('terminated');
    plan_stream($database);
    my $dispatcher = $server->wait_for_worker('dispatcher', $database);
    for my $share (0.2, 0.4, 0.5) {
        wait_for_events($database, $share * $timers);
        is($server->sql("select pg_terminate_backend($dispatcher)"), 't', 'the dispatcher is terminated');
        my $next = $server->wait_for_worker('dispatcher', $database, $dispatcher);
        ok($next, 'another one comes');
        $dispatcher = $next;
    }
    all_delivered_ok($database);
};

subtest 'the dispatcher is cancelled' => sub {
    my $database = $server->new_database('cancelled');
    plan_stream($database);
    for my $share (0.2, 0.4, 0.5) {
        wait_for_events($database, $share * $timers);
        my $dispatcher = $server->wait_for_worker('dispatcher', $database);
        is($server->sql("select pg_cancel_backend($dispatcher)"), 't', 'the dispatcher is cancelled');
    }
    all_delivered_ok($database);
};

subtest 'the launcher is terminated' => sub {
    my $database = $server->new_database('unlaunched');
    my $launcher = $server->wait_for_worker('launcher');
    my $dispatcher = $server->wait_for_worker('dispatcher', $database);
    plan_stream($database);
    is($server->sql("select pg_terminate_backend($launcher)"), 't', 'the launcher is terminated');
    my $next = $server->wait_for_worker('launcher', undef, $launcher);
    ok($next, 'another one comes');
    is($server->wait_for_worker('dispatcher', $database), $dispatcher, 'the dispatcher stays');
    # The new launcher did not start it, and must find out all the same that it is gone.
    is($server->sql("select pg_terminate_backend($dispatcher)"), 't', 'it is terminated, too');
    ok($server->wait_for_worker('dispatcher', $database, $dispatcher), 'another one comes');
    all_delivered_ok($database);
};

subtest 'the launcher and all dispatchers are terminated at once' => sub {
    my $database = $server->new_database('bare');
    my $dispatcher = $server->wait_for_worker('dispatcher', $database);
    my $served = "select string_agg(datname, ' ' order by datname) from pg_stat_activity
        where backend_type = 'durable_timers dispatcher'";
    my $before = $server->sql($served);
    plan_stream($database);
    cmp_ok($server->sql("select count(pg_terminate_backend(pid)) from pg_stat_activity
        where backend_type like 'durable_timers %'"), '>', 5, 'all workers are terminated');
    ok($server->wait_for_worker('dispatcher', $database, $dispatcher), 'the dispatcher comes again');
    $server->await_ok($served, 'in every database', expected => $before);
    all_delivered_ok($database);
};

done_testing();

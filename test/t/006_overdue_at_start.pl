# What came due while the server was down fires when it starts, wherever the stored marks stand.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use TimerServer;
use Test::More;
use Time::HiRes qw(sleep time);

my $server = TimerServer->start_new('main');

# Stops the server until the timers that the SQL schedules are due, and starts it again.
sub sleep_through {
    my ($mode, $sql) = @_;
    $server->sql($sql);
    my $last = $server->sql("select extract(epoch from max(fire_at)) from timers.timer
        where fire_at < now() + interval '1 min'");
    $server->stop($mode);
    sleep(0.01) while time() <= $last;
    $server->start;
    return;
}

# Timers on both sides of the time at which the marks are stored.
my $history = "select plan('old ' || n, '-1 day') from generate_series(1, 20) n; select plan('far', '1 day')";

sub due_delivered_ok {
    $server->delivered_ok($_, "\"$_\" is delivered", seconds => 10) for 'due', 'due too';
    is($server->sql("select min(fired_at) > pg_postmaster_start_time() from timers.outbox
        where correlation_id like 'due%'"), 't', 'by the new server');
    is($server->sql("select count(*) || ' ' || count(distinct timer_id) from timers.outbox"), '22 22',
        'nothing is delivered twice');
    return;
}

subtest 'fast shutdown' => sub {
    sleep_through('fast', "$history; select plan('due', '2 s'), plan('due too', '2 s', 'other')");
    due_delivered_ok();
    is($server->sql("select status('far')"), 'scheduled', 'nor too early');
};

my %state = (
    'with marks' => "select true",
    'without any mark' => "delete from timers.safe_mark",
    'with old marks' => "update timers.safe_mark set safe_at = '2001-01-01'",
);

for my $case ([ 'fast', 'without any mark' ], map { [ 'immediate', $_ ] } sort keys %state) {
    my ($mode, $marks) = @$case;
    subtest "$mode shutdown, $marks" => sub {
        $server->sql("truncate timers.timer, timers.outbox, timers.claim; $history");
        $server->wait_until("select count(*) = 20 from timers.outbox");
        $server->wait_until("select count(*) > 0 from timers.safe_mark");
        sleep_through($mode, "select plan('due', '2 s'), plan('due too', '2 s', 'other'); $state{$marks}");
        due_delivered_ok();
    };
}

subtest 'a transaction that is still open when the mark is stored and lost when the server dies' => sub {
    $server->sql("truncate timers.timer, timers.outbox, timers.claim; $history");
    my $session = $server->session;
    $session->query_safe("select plan('moved', '1 s'); begin; select plan('moved', '1 hour')");
    $server->sql("select plan('fence', '1500 ms')");
    $server->delivered_ok('fence', 'a later timer of the lane is delivered');
    $server->stop('immediate');
    $server->start;
    $server->delivered_ok('moved', 'the time that was committed holds', seconds => 10);
    { local $@; eval { $session->quit } }
};

subtest 'paused, external and unacknowledged timers' => sub {
    $server->sql("truncate timers.timer, timers.outbox, timers.claim;
        select timers.configure('mine', delivery => 'external');
        select timers.configure('calls', delivery => 'notify', channel => 'c', lease => '1 s');
        select plan('called', '0', 'calls')");
    $server->wait_until("select status('called')", expected => 'firing');
    sleep_through('fast', "select timers.pause('held');
        select plan('held', '1 s', 'held'), plan('mine', '1 s', 'mine'), plan('due', '1 s')");
    $server->delivered_ok('due', 'a timer is delivered', seconds => 10);
    $server->await_ok("select attempts >= 2 from timers.timer where correlation_id = 'called'",
        'a claim whose lease ran out is repeated');
    is($server->delivered, 'due', 'a paused or external one is not delivered');
    is($server->sql("select correlation_id from timers.claim_due('mine')"), 'mine', 'but can be claimed');
    $server->sql("select timers.unpause('held')");
    $server->delivered_ok('held', 'or unpaused', seconds => 10);
};

done_testing();

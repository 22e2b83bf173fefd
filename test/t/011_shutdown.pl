# A shutdown never waits for the workers, whatever they wait for, and what they were doing is done once afterwards.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use TimerServer;
use Test::More;
use Time::HiRes qw(sleep time);

# Small batches, so that much to do takes a while.
my $server = TimerServer->start_new('main', init => { allows_streaming => 1 },
    conf => 'durable_timers.batch_size = 20');

# Far less than pg_ctl's own minute.
$ENV{PGCTLTIMEOUT} = 15;

sub stops_ok {
    my ($mode) = @_;
    return is($server->stop($mode, fail_ok => 1), 1, "a $mode shutdown succeeds");
}

for my $mode ('smart', 'fast') {
    subtest "$mode shutdown with nothing to do" => sub {
        $server->sql("select plan('far', '1 hour')");
        $server->wait_until("select sleeps_until > clock_timestamp() from timers.workers");
        stops_ok($mode);
        $server->start;
        is($server->sql("select status('far')"), 'scheduled', 'the timer is there');
    };

    subtest "$mode shutdown with much to do" => sub {
        $server->sql("select count(plan('$mode ' || n, '0', 'lane ' || n % 9)) from generate_series(1, 20000) n");
        $server->wait_until('select count(*) > 0 from timers.outbox');
        stops_ok($mode);
        $server->start;
        $server->await_ok("select count(*) || ' ' || count(distinct timer_id) from timers.outbox
            where correlation_id like '$mode %'", 'the rest is delivered afterwards', expected => '20000 20000');
        is($server->sql("select bool_or(late) and not bool_and(late) from (
            select fired_at > pg_postmaster_start_time() as late from timers.outbox
            where correlation_id like '$mode %') o"), 't', 'it was in the middle of it');
    };

    subtest "$mode shutdown while the dispatcher waits for a synchronous standby" => sub {
        $server->append_conf('postgresql.conf', "synchronous_standby_names = 'nowhere'");
        $server->reload;
        $server->wait_until("select setting = 'nowhere' from pg_settings where name = 'synchronous_standby_names'");
        $server->sql("set synchronous_commit = local; select plan('synchronous $mode', '0')");
        $server->wait_until(TimerServer::worker_pid_query('dispatcher') . " and wait_event = 'SyncRep'",
            expected => $server->worker_pid('dispatcher'));
        stops_ok($mode);
        $server->adjust_conf('postgresql.conf', 'synchronous_standby_names', undef);
        $server->start;
        $server->delivered_ok("synchronous $mode", 'the timer is delivered', seconds => 10);
        is($server->sql("select status('synchronous $mode') || ' ' || count(*) from timers.outbox
            where correlation_id = 'synchronous $mode'"), 'fired 1', 'once');
    };
}

subtest 'smart shutdown while a session is open' => sub {
    my $session = $server->session;
    $session->query_safe('select 1');
    system_or_bail('pg_ctl', '-D', $server->data_dir, '-m', 'smart', '-W', 'stop');
    $server->wait_for_log(qr/received smart shutdown request/);
    $session->query_safe("select plan('meanwhile', '100 ms')");
    my $deadline = time() + $TimerServer::patience;
    my $delivered = '0';
    $delivered = $session->query_safe("select times_delivered('meanwhile')")
        until $delivered eq '1' || time() > $deadline;
    is($delivered, '1', 'timers are delivered as long as it is');
    $session->quit;
    $deadline = time() + $ENV{PGCTLTIMEOUT};
    sleep(0.02) while -e $server->data_dir . '/postmaster.pid' && time() < $deadline;
    ok(!-e $server->data_dir . '/postmaster.pid', 'the shutdown succeeds when it is closed');
    $server->_update_pid(-1);
    $server->start;
    is($server->sql("select times_delivered('meanwhile')"), '1', 'once');
};

subtest 'fast shutdown while the dispatcher waits for a lock' => sub {
    my $session = $server->session;
    $session->query_safe('begin; lock table timers.outbox');
    $server->sql("select plan('blocked', '0')");
    $server->wait_until("select exists (
        select from pg_locks where not granted and relation = 'timers.outbox'::regclass)");
    stops_ok('fast');
    { local $@; eval { $session->quit } }
    $server->start;
    $server->delivered_ok('blocked', 'the timer is delivered afterwards', seconds => 10);
};

done_testing();

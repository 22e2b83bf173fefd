# A standby fires nothing; once promoted it goes on by itself where the primary stopped.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use TimerServer;
use Test::More;

my $primary = TimerServer->start_new('primary', init => { allows_streaming => 1 });
$primary->sql("select plan('far', '1 day')");
$primary->backup('base');
my $standby = TimerServer->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
$standby->start;

my $workers = "select count(*) from pg_stat_activity where backend_type like 'durable_timers%'";

subtest 'while the primary lives' => sub {
    $primary->sql("
        select timers.configure('calls', delivery => 'notify', channel => 'c', lease => '3 s');
        select timers.pause('held');
        select plan('early', '100 ms'), plan('called', '0', 'calls'), plan('held', '0', 'held')");
    $primary->delivered_ok('early', 'the primary delivers');
    $standby->delivered_ok('early', 'and the standby has the event');
    $primary->wait_until("select status('called')", expected => 'firing');
    is($standby->sql($workers), '0', 'the standby runs no workers');
    is($standby->sql("select state = 'running' from timers.workers"), 'f', 'and says that none runs');
    is($standby->sql("select status from timers.lookup(id('far'))"), 'scheduled', 'it can be read');
    is($standby->sql("select scheduled, firing, explanation ~ 'primary' from timers.overview
        where process_manager in ('orders', 'calls') order by 1"), "0|1|t\n1|0|t", 'with what there is to do');
    like($standby->sql('select timers.prometheus()'), qr/^durable_timers_scheduled\{process_manager="orders"\} 1$/m,
        'also by Prometheus');
    is($standby->sql("select string_agg(correlation_id, ' ' order by correlation_id) from timers.find_pending()"),
        'called far held', 'page by page, too');
    like($standby->sql("select explanation from timers.inspect(id('far'))"), qr/primary/, 'with the reason why it waits');
    like($standby->sql_error($_), qr/^25006 /, "refused: $_")
        for "select plan('new', '0')", "select timers.fire_due()", "select timers.cancel(id('far'))",
        "select timers.claim_due()";
};

subtest 'the primary dies' => sub {
    $primary->sql("select plan('overdue ' || n, n * interval '30 ms' + '1 s') from generate_series(1, 20) n;
        select plan('later ' || n, '4 s', 'lane ' || n) from generate_series(1, 5) n");
    $primary->wait_for_catchup($standby, 'replay');
    $primary->stop('immediate');
    $standby->wait_for_clock("select max(fire_at) from timers.timer where correlation_id like 'overdue%'");
    my $delivered = $standby->sql("select count(*) from timers.outbox where correlation_id like 'overdue%'");
    is($standby->sql($workers), '0', 'the standby runs no workers');
    is($standby->sql("select count(*) from timers.timer where status = 'scheduled' and fire_at <= now()
        and process_manager = 'orders'"), 20 - $delivered, 'nor does it fire what is due now');
    cmp_ok($delivered, '<', 20, 'something is left to fire');
};

subtest 'the standby is promoted' => sub {
    $standby->promote;
    $standby->await_ok("select count(*) from timers.outbox where correlation_id like 'overdue%'",
        'what is overdue is delivered', expected => '20', seconds => 10);
    $standby->await_ok("select count(*) from timers.outbox where correlation_id like 'later%'",
        'and what is due later', expected => '5');
    $standby->sql("select plan('new', '100 ms')");
    $standby->delivered_ok('new', 'and what is new', seconds => 10);
    $standby->await_ok("select attempts > 1 from timers.timer where correlation_id = 'called'",
        'a claim that the primary had sent out is repeated when its lease ends');
    is($standby->sql("select count(*) || ' ' || count(distinct timer_id) from timers.outbox"), '27 27',
        'nothing is delivered twice');
    is($standby->sql("select min(position) = 1 and max(position) - min(position) >= 26 from timers.outbox"), 't',
        'and the order of events goes on');
    is($standby->sql("select status('far') || ' ' || status('held')"), 'scheduled scheduled',
        'neither what is far away nor what is paused has fired');
    is($standby->sql("select timers.unpause('held')"), 't', 'the pause is known here');
    $standby->delivered_ok('held', 'and can be ended', seconds => 10);
};

subtest 'a second restart as a primary' => sub {
    $standby->sql("select plan('again', '1 s')");
    $standby->restart;
    $standby->delivered_ok('again', 'a timer is delivered');
    is($standby->sql("select count(*) - count(distinct timer_id) from timers.outbox"), '0', 'nothing twice');
};

done_testing();

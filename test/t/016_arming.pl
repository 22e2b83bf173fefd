# A copy of a database does not fire: its timers wait until somebody says that this is meant.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0);
my $elsewhere = $server->new_database('elsewhere');
my $original = $server->new_database('original');
$server->sql("
    select plan('past', '0');
    select timers.configure('orders', channel => 'bell');
    select timers.configure('calls', delivery => 'notify', channel => 'c', lease => '1 hour');
    select timers.pause('held');
    select plan('called', '0', 'calls'), plan('held', '0', 'held'), plan('far', '1 hour'), plan('dropped', '1 hour')",
    $original);
$server->delivered_ok('past', 'the original delivers', database => $original);
$server->wait_until("select status('called')", database => $original, expected => 'firing');
# Scheduled, and overdue by the time the copies are made.
$server->sql("select timers.pause('orders'), timers.cancel(id('dropped')), plan('due', '100 ms')", $original);
$server->wait_for_clock("select fire_at from timers.timer where correlation_id = 'due'", $original);

my $all = "select string_agg(correlation_id || ' ' || status || ' ' || fire_at || ' ' || attempts, ', '
    order by correlation_id) from timers.timer";
my $timers = $server->sql($all, $original);
my $dump = $server->basedir . '/original.dump';
system_or_bail('pg_dump', '-Fc', '-f', $dump, $server->connstr($original));

sub waits_ok {
    my ($database) = @_;
    $server->await_ok('select state from timers.workers', 'it is not armed', database => $database,
        expected => 'not armed');
    like($server->sql('select explanation from timers.workers', $database), qr/timers\.arm\(\)/, 'and says what to do');
    is($server->sql("select bool_and(explanation ~ 'timers\.arm') and sum(due) >= 1 from timers.overview", $database),
        't', 'and so does each of its process managers');
    is($server->sql("select value from timers.metrics where name = 'timer.dispatcher.running'", $database), '0',
        'and the metrics');
    is($server->sql($all, $database), $timers, 'its timers are those of the original');
    is($server->sql("select process_manager, delivery, channel, lease, paused from timers.process_manager order by 1",
        $database), "calls|notify|c|01:00:00|f\nheld|outbox|||t\norders|outbox|bell||t", 'and so are its settings');
    is($server->sql('select count(*) from timers.claim', $database), '1', 'and its claims');
    is($server->delivered($database), 'past', 'and its events');
    # Also nothing new, as long as nobody says so; another database shows that time goes by.
    $server->sql("select timers.unpause('orders'), plan('new', '0', 'another lane')", $database);
    $server->sql("select plan('fence $database', '500 ms')", $elsewhere);
    $server->delivered_ok("fence $database", 'time goes by', database => $elsewhere);
    is($server->delivered($database), 'past', 'nothing fires');
    $server->sql('select timers.arm()', $database);
    $server->delivered_ok($_, "armed, it delivers \"$_\"", database => $database, seconds => 10) for 'due', 'new';
    is($server->sql('select state from timers.workers', $database), 'running', 'it runs');
    is($server->sql("select concat_ws(' ', status('far'), status('held'), status('dropped'), status('called'))",
        $database), 'scheduled scheduled cancelled firing', 'what is not due, paused, final or held stays');
    $server->sql("select timers.unpause('held'), plan('far', '0')", $database);
    $server->delivered_ok($_, "until its time comes: \"$_\"", database => $database, seconds => 10) for 'held', 'far';
    is($server->sql('select count(*) || \' \' || count(distinct timer_id) from timers.outbox', $database), '5 5',
        'each once');
    return;
}

for my $strategy ('wal_log', 'file_copy') {
    subtest "a clone by $strategy" => sub {
        $server->sql("create database by_$strategy template $original strategy $strategy");
        waits_ok("by_$strategy");
    };
}

subtest 'a dump and restore' => sub {
    $server->sql('create database restored');
    command_ok([ 'pg_restore', '-d', $server->connstr('restored'), $dump ], 'it is restored');
    waits_ok('restored');
};

subtest 'a restore in parallel' => sub {
    $server->sql('create database restored_in_parallel');
    command_ok([ 'pg_restore', '-j', '3', '-d', $server->connstr('restored_in_parallel'), $dump ], 'it is restored');
    waits_ok('restored_in_parallel');
};

subtest 'the original' => sub {
    is($server->sql('select state from timers.workers', $original), 'running', 'it stays armed');
    $server->sql("select timers.unpause('orders')", $original);
    $server->delivered_ok('due', 'and delivers', database => $original);
    $server->restart;
    $server->sql("select plan('after', '0')", $original);
    $server->delivered_ok('after', 'after a restart, too', database => $original, seconds => 10);
    $server->sql("alter database $original rename to renamed");
    $server->sql("select plan('renamed', '0')", 'renamed');
    $server->delivered_ok('renamed', 'and under another name', database => 'renamed', seconds => 10);
};

subtest 'what is not a copy' => sub {
    my $database = $server->new_database('own');
    my $columns = 'timer_id, process_manager, correlation_id, fire_at';
    $server->sql("copy timers.timer ($columns) from stdin;
00000000-0000-4000-8000-000000000001\torders\tcopied\t2001-01-01 00:00:00+00
\\.
", $database);
    $server->delivered_ok('copied', 'rows by COPY fire', database => $database, seconds => 10);
    $server->sql("begin; copy timers.timer (wake_at, $columns) from stdin;
2001-01-01 00:00:00+00\t00000000-0000-4000-8000-000000000002\torders\trestored\t2001-01-01 00:00:00+00
\\.
rollback; select plan('later', '0')", $database);
    $server->delivered_ok('later', 'a restore that is rolled back changes nothing', database => $database,
        seconds => 10);
};

done_testing();

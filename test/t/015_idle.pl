# A database with nothing due costs nothing: its dispatcher sleeps and runs no query.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use TimerServer;
use Test::More;
use Time::HiRes qw(sleep time);

# No autovacuum: the numbers are to be the dispatchers' own.
my $server = TimerServer->start_new('main', extension => 0, conf => 'autovacuum = off');

# What each database has to wait for.
my %work = (
    nothing => 'select true',
    future => "select plan('far', '1 hour'), plan('further', '1 day', 'other')",
    fired => "select plan('due ' || n, n * interval '10 ms') from generate_series(1, 50) n;
        select plan('far', '1 hour')",
    moved => "select plan('pushed', '300 ms'); select plan('pushed', '1 hour') from generate_series(1, 50);
        select plan('dropped', '300 ms'), timers.cancel(id('dropped'))",
    undone => "begin; select plan('undone', '0'), plan('undone too', '0', 'other'); rollback",
    paused => "select timers.pause('orders'), plan('held', '0')",
    external => "select timers.configure('orders', delivery => 'external');
        select plan('unclaimed', '0'), plan('claimed', '0'); select count(*) from timers.claim_due(lease => '1 hour')",
    notified => "select timers.configure('orders', delivery => 'notify', channel => 'c', lease => '1 hour');
        select plan('called', '0')",
    dead => "select timers.configure('orders', delivery => 'notify', channel => 'c', max_attempts => 0);
        select plan('exhausted', '0')",
    consumed => "select plan('taken', '-1 day'); select count(timers.fire_due());
        select count(*) from timers.take_events()",
);
my @databases = sort keys %work;

for my $database (@databases) {
    $server->new_database($database);
    $server->sql($work{$database}, $database);
}

# Asked in the database postgres, which alone has the traces of asking.
sub transactions {
    return $server->sql("select string_agg(datname || ' ' || xact_commit + xact_rollback, ', ' order by datname)
        from pg_stat_database where datname not in ('postgres', 'template0', 'template1')");
}

sub last_activity {
    return $server->sql("select string_agg(datname || ' ' || state || ' ' || state_change, ', ' order by datname)
        from pg_stat_activity where backend_type = 'durable_timers dispatcher'");
}

sub inside {
    my ($database) = @_;
    return $server->sql("select passes from timers.workers
        union all (select coalesce(seq_scan, 0) + coalesce(idx_scan, 0)
            from pg_stat_user_tables where schemaname = 'timers' order by relname)", $database);
}

# The stored marks follow the last activity within some ten seconds.
$server->wait_for_sleep($_) for @databases;
my %inside = map { $_ => inside($_) } @databases;
my $wakeups = $server->sql('select wakeups from timers.workers', 'future');
# These looks count, too, when their sessions have ended.
$server->wait_until("select count(*) from pg_stat_activity
    where backend_type = 'client backend' and datname <> 'postgres'", expected => '0');
my ($transactions, $activity) = (transactions(), last_activity());
my $until = time() + 12;
my @dispatchers = split /\n/, $server->sql("select pid from pg_stat_activity
    where backend_type = 'durable_timers dispatcher'");
while (time() < $until && transactions() eq $transactions) {
    # A wake-up without work, as it comes once a minute and from the server's own signals, must cost no query either.
    kill 'USR1', @dispatchers;
    sleep(0.5);
}
is(transactions(), $transactions, 'no transaction is run');
is(last_activity(), $activity, 'no dispatcher has been active');
is(inside($_), $inside{$_}, "neither pass nor scan: $_") for @databases;
cmp_ok($server->sql('select wakeups from timers.workers', 'future'), '>', $wakeups, 'although they have been woken');

# They were not asleep for good.
$server->sql("select plan('fence', '0', 'fence')", $_) for @databases;
$server->delivered_ok('fence', "and woken by a timer: $_", database => $_, seconds => 10) for @databases;

done_testing();

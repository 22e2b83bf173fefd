# Views and counts cost the same however many timers there are: with twenty times as many they run the same plans, and
# read no more pages.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use JSON::PP qw(decode_json);
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', conf => "autovacuum = off\nshared_buffers = 256MB");

# Enough for a planner to think of reading the whole table rather than looking each up.
my $claims = 1500;

# As many that wait, and that have fired, as the table is large; of everything else the same everywhere.
sub load_timers {
    my ($database, $timers) = @_;
    $server->sql("
        select timers.pause('held'), timers.configure('work', delivery => 'external');
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, attempts)
        select gen_random_uuid(), 'orders ' || n % 2, n::text, timestamptz '2001-01-01' + n * interval '1 s', 'fired', 1
        from generate_series(1, $timers / 5) n;
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
        select gen_random_uuid(), 'orders ' || n % 2, n::text, now() + interval '1 day' + n * interval '1 s'
        from generate_series(1, $timers * 4 / 5) n;
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, died_at, last_error)
        select gen_random_uuid(), 'orders 0', n::text, '2001-01-01', 'dead', now(), 'x' from generate_series(1, 50) n;
        select plan('held ' || n, '-1 day', 'held') from generate_series(1, 30) n;
        select plan('work ' || n, '-1 day', 'work') from generate_series(1, $claims) n;
        select count(*) from timers.claim_due('work', $claims, '1 day');
        select plan('passed ' || n, '0', 'orders ' || n) from generate_series(0, 1) n", $database);
    $server->delivered_ok("passed $_", 'the dispatcher has been there', database => $database) for 0 .. 1;
    $server->sql('vacuum (analyze) timers.timer, timers.claim', $database);
    return;
}

my %query = (
    overview => 'select * from timers.overview',
    workers => 'select * from timers.workers',
    metrics => 'select * from timers.metrics',
    prometheus => 'select timers.prometheus()',
    count_due => 'select timers.count_due()',
    count_stuck => "select timers.count_stuck('0', 1)",
    find_stuck => "select * from timers.find_stuck('0', 1)",
);

# The pages that a query touches when what it needs to know of the catalog is known.
sub pages {
    my ($database, $query) = @_;
    my $explained = $server->sql("
        $query \\g /dev/null
        explain (analyze, buffers, timing off, summary off, format json) $query", $database);
    my ($plan) = @{ decode_json($explained) };
    return $plan->{Plan}{'Shared Hit Blocks'} + $plan->{Plan}{'Shared Read Blocks'};
}

# The plans that a query runs inside, without what differs from run to run; each once.
sub plans {
    my ($database, $query) = @_;
    my ($status, $out, $said) = $server->psql($database, "
        load 'auto_explain';
        set auto_explain.log_min_duration = 0;
        set auto_explain.log_nested_statements = on;
        set auto_explain.log_level = notice;
        set compute_query_id = off;
        $query \\g /dev/null");
    my @plans = split /^.*NOTICE:  duration: .*plan:\n/m, $said;
    s/  \(cost=.*?\)$//mg for @plans;
    my %seen;
    return join "\n", grep { !$seen{$_}++ } @plans;
}

my %timers = (small => 10_000, large => 200_000);
for my $database (sort keys %timers) {
    $server->new_database($database);
    load_timers($database, $timers{$database});
}
for my $name (sort keys %query) {
    my %pages = map { $_ => pages($_, $query{$name}) } keys %timers;
    note("$name: $pages{small} pages in a small table, $pages{large} in a large one");
    # An index that is a level deeper costs a page for each descent: for each claim, for one.
    cmp_ok($pages{large}, '<=', $pages{small} + $claims + 200, "$name reads no more in a large table");
    my %plans = map { $_ => plans($_, $query{$name}) } keys %timers;
    is($plans{large}, $plans{small}, '... by the same plans');
    unlike($plans{large}, qr/Seq Scan on timer\b/, '... and never all of it');
    like($plans{large}, qr/Query Text/, '... which are seen');
}
is($server->sql($query{$_}, 'large'), $server->sql($query{$_}, 'small'), "$_ says the same")
    for qw(count_due count_stuck);

done_testing();

# The stored mark follows the work so that a restart need not look at all history, and never passes what may still come.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0, conf => 'autovacuum = off');

sub mark { return $server->sql("select max(safe_at) from timers.safe_mark where process_manager = 'orders'", $_[0]) }

# Index entries that dispatchers have read, as they report when they end.
sub entries_read {
    my ($database) = @_;
    my $dispatcher = $server->wait_for_worker('dispatcher', $database);
    $server->wait_until("select state = 'running' from timers.workers", database => $database);
    $server->sql("select pg_terminate_backend($dispatcher)");
    $server->wait_until("select not exists (select from pg_stat_activity where pid = $dispatcher)");
    return $server->sql("select idx_tup_read from pg_stat_user_indexes where indexrelname = 'timer_due_idx'",
        $database);
}

my $history = 5000;

sub make_history {
    my ($database) = @_;
    $server->sql("select count(plan('old ' || n, '0')) from generate_series(1, $history) n", $database);
    $server->wait_until("select count(*) = $history from timers.outbox", database => $database);
    return;
}

# Two databases that work for a while at first; what comes of it takes its time.
my $followed = $server->new_database('followed');
my $older = $server->new_database('older');
make_history($_) for $followed, $older;
$server->wait_until("select count(*) > 0 from timers.safe_mark", database => $_) for $followed, $older;
my $session = $server->session($older);
$session->query_safe("begin; select plan('slow', '0')");
my $begun = $server->sql('select clock_timestamp()');
$server->sql("select plan('quick', '0')", $older);
$server->delivered_ok('quick', 'the lane of an open transaction goes on', database => $older);

# With sessions that schedule, move, cancel and roll back, and transactions that stay open for a while, a mark never
# stands above a timer that waits.
subtest 'at any moment' => sub {
    my $database = $server->new_database('watched');
    my $file = $server->basedir . '/mixed.sql';
    append_to_file($file, <<'SQL');
\set timer random(1, 300)
\set delay random(-100, 3000)
\set nap random(0, 40)
\set end random(1, 3)
begin;
select plan('t' || :timer, :delay * interval '1 ms', 'lane ' || :timer % 3);
select pg_sleep(:nap / 1000.0);
\if :end = 1
rollback;
\else
commit;
\endif
delete from timers.timer where status = 'fired' and timer_id = id('t' || :timer);
SQL
    my ($out, $error) = ('', '');
    my $load = IPC::Run::start([ 'pgbench', '-n', '-c', '6', '-T', '12', '-f', $file, $server->connstr($database) ],
        '<', \undef, '>', \$out, '2>', \$error);
    my ($looks, $above, $moves, $last) = (0, 0, 0, '');
    while ($load->pump_nb || $load->pumpable) {
        my $answer = $server->sql("select max(safe_at), count(t.timer_id) from timers.safe_mark m
            left join timers.timer t on t.process_manager = m.process_manager and t.status = 'scheduled'
            and t.wake_at < m.safe_at", $database);
        my ($mark, $count) = split /\|/, $answer;
        $looks++;
        $above += $count;
        $moves++ if $mark ne $last;
        $last = $mark;
        last if !$load->pumpable;
    }
    $load->finish;
    cmp_ok($looks, '>', 20, 'the marks were watched');
    cmp_ok($moves, '>', 1, 'they moved meanwhile');
    is($above, 0, 'none stood above a scheduled timer');
    $server->await_ok("select count(*) from timers.timer where status = 'scheduled'", 'in the end all is delivered',
        database => $database, expected => '0');
};

subtest 'a mark that is already stored, and a transaction that is older than the next' => sub {
    my %in = (database => $older);
    # Longer than marks are apart.
    $server->wait_for_clock("timestamptz '$begun' + interval '13 s'");
    is($server->sql("select count(*) from timers.safe_mark where safe_at > '$begun'", $in{database}), '0',
        'the stored mark stays');
    $session->query_safe('commit');
    $server->delivered_ok('slow', 'its timer is delivered', %in, seconds => 10);
    $session->quit;
};

subtest 'an open transaction holds it back' => sub {
    my %in = (database => $server->new_database('held_back'));
    my $session = $server->session($in{database});
    my $before = $session->query_safe("select clock_timestamp(); begin;
        select from (select plan('slow', '0')) planned");
    make_history($in{database});
    # Every further look at the writers is a pass.
    my $passes = $server->sql('select passes from timers.workers', $in{database});
    $server->wait_until("select passes >= $passes + 3 from timers.workers", %in);
    is($server->sql("select count(*) from timers.safe_mark where safe_at > '$before'", $in{database}), '0',
        'no mark is stored beyond what it may write');
    # A reader holds nothing back.
    my $reader = $server->session($in{database});
    $reader->query_safe('begin isolation level repeatable read; select count(*) from timers.timer');
    $session->query_safe('commit');
    $server->delivered_ok('slow', 'its timer is delivered', %in, seconds => 10);
    $server->await_ok("select safe_at > '$before' from timers.safe_mark where process_manager = 'orders'",
        'then the mark goes on', %in);
    $_->quit for $session, $reader;
};

subtest 'the mark follows' => sub {
    my %in = (database => $followed);
    my $first = mark($in{database});
    is($server->sql("select '$first' >= max(fired_at) from timers.outbox", $in{database}), 't',
        'after some work a mark is stored');
    $server->sql("select plan('next', '0'), plan('far', '1 day')", $in{database});
    $server->await_ok("select safe_at > '$first' from timers.safe_mark where process_manager = 'orders'",
        'after some more it is stored again', %in);
    is($server->sql("select safe_at <= clock_timestamp() from timers.safe_mark", $in{database}), 't',
        'it is not ahead of the clock');

    $server->restart;
    $server->sql("select plan('after', '0')", $in{database});
    $server->delivered_ok('after', 'after a restart timers are delivered', %in);
    my $before = $server->sql("select idx_tup_read from pg_stat_user_indexes where indexrelname = 'timer_due_idx'",
        $in{database});
    my $from_mark = entries_read($in{database});
    # Once more, and then without the mark: from the left end of the index.
    $server->wait_for_worker('dispatcher', $in{database});
    $server->sql('delete from timers.safe_mark', $in{database});
    $server->restart;
    $server->sql("select plan('after that', '0')", $in{database});
    $server->delivered_ok('after that', 'also without a mark', %in);
    my $from_left = entries_read($in{database});
    cmp_ok($from_mark - $before, '<', $history / 2, 'from the mark, history is not read again');
    cmp_ok($from_left - $from_mark, '>=', $history, 'without it, it is');
    is($server->sql('select count(*) - count(distinct timer_id) from timers.outbox', $in{database}), '0',
        'nothing twice');
};

done_testing();

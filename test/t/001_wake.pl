# A committed timer is delivered when it is due, whatever the dispatcher was waiting for; what was rolled back is not.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0);

# A far timer makes the dispatcher's sleep long: nothing but the wake-up under test can end it.
sub database_with_far_timer {
    my ($database) = @_;
    $server->new_database($database);
    is($server->sql("select plan('far', '1 hour')", $database), 'inserted', 'a timer is an hour away');
    $server->wait_for_sleep($database);
    $server->wait_until("select sleeps_until > clock_timestamp() from timers.workers", database => $database);
    return (database => $database);
}

subtest 'an earlier timer while the dispatcher sleeps towards a later one' => sub {
    my %in = database_with_far_timer('earlier');
    $server->sql("select plan('near', '300 ms')", $in{database});
    $server->delivered_ok('near', 'the earlier timer is delivered', %in, seconds => 10);
    is($server->sql("select fired_at >= fire_at from timers.outbox", $in{database}), 't', 'not before it was due');
    is($server->delivered($in{database}), 'near', 'and nothing else');
};

subtest 'a time in the past' => sub {
    my %in = database_with_far_timer('past');
    is($server->sql("select timers.schedule(id('old'), 'orders', 'old', '2001-02-03 04:05:06+00')", $in{database}),
        'inserted', 'a past time is accepted');
    $server->delivered_ok('old', 'it is due at once', %in, seconds => 10);
    is($server->sql("select fire_at = '2001-02-03 04:05:06+00' from timers.outbox", $in{database}),
        't', 'the event tells the time that was asked for');
};

subtest 'a transaction that ends long after its timer was due' => sub {
    my %in = database_with_far_timer('slow');
    my $session = $server->session($in{database});
    $session->query_safe("begin; select plan('slow', '100 ms')");
    $server->sql("select plan('quick', '300 ms')", $in{database});
    # The lane has been scanned beyond the time of the timer that nobody could see.
    $server->delivered_ok('quick', 'a later timer of the lane passes it by', %in);
    is($server->delivered($in{database}), 'quick', 'an uncommitted timer is not delivered');
    $session->query_safe('commit');
    $server->delivered_ok('slow', 'it is delivered after the commit', %in, seconds => 10);
    $session->quit;
};

subtest 'a rolled back transaction' => sub {
    my %in = database_with_far_timer('undone');
    $server->sql("begin; select plan('undone', '0', 'new lane'), plan('undone too', '0'); rollback", $in{database});
    $server->sql("begin; select plan('far', '0'); rollback", $in{database});
    $server->sql("select plan('fence', '100 ms')", $in{database});
    $server->delivered_ok('fence', 'a timer that was committed later', %in);
    is($server->delivered($in{database}), 'fence', 'only that is delivered');
    is($server->sql("select string_agg(correlation_id, ' ' order by 1) from timers.timer", $in{database}),
        'far fence', 'no timer is left');
    is($server->sql("select string_agg(process_manager, ' ' order by 1) from timers.process_manager", $in{database}),
        'orders', 'nor its process manager');
};

subtest 'a rolled back savepoint' => sub {
    my %in = database_with_far_timer('savepoint');
    $server->sql("
        begin;
        select plan('before', '100 ms');
        savepoint s;
        select plan('inside', '0'), plan('far', '0'), timers.cancel(id('before'));
        rollback to s;
        select plan('after', '200 ms');
        savepoint t;
        select plan('released', '200 ms');
        release t;
        commit", $in{database});
    $server->delivered_ok($_, "the timer \"$_\" is delivered", %in) for 'before', 'after', 'released';
    is($server->delivered($in{database}), 'after before released', 'what the savepoint did is undone');
    is($server->sql("select status('far') || ' ' || (fire_at > clock_timestamp() + interval '50 min')
        from timers.timer where correlation_id = 'far'", $in{database}), 'scheduled true', 're-arming, too');
};

# A plain row lock tells the dispatcher nothing when it goes.
for my $release ('commit', 'rollback to s') {
    subtest "a due timer whose row is locked until $release" => sub {
        my %in = database_with_far_timer('locked_' . ($release =~ /commit/ ? 'commit' : 'savepoint'));
        my $session = $server->session($in{database});
        $session->query_safe("
            select plan('locked', '300 ms');
            begin; savepoint s; select from timers.timer where correlation_id = 'locked' for update");
        $server->sql("select plan('free', '500 ms')", $in{database});
        $server->delivered_ok('free', 'a timer behind it is delivered', %in);
        is($server->delivered($in{database}), 'free', 'the locked one is not');
        $session->query_safe($release);
        $server->delivered_ok('locked', 'it is once the lock has gone', %in, seconds => 10);
        $session->quit;
    };
}

subtest 'the doorbell' => sub {
    my %in = database_with_far_timer('doorbell');
    my $listener = $server->session($in{database});
    $listener->query_safe('listen bell');
    $server->sql("select timers.configure('orders', channel => 'bell')", $in{database});
    $server->sql("select plan('ring ' || i, '100 ms') from generate_series(1, 3) i", $in{database});
    my ($bell) = TimerServer::notifications($listener, 1);
    is_deeply($bell, [ 'bell', '' ], 'a notification without a payload comes');
    $server->delivered_ok("ring $_", "event $_ is there", %in) for 1 .. 3;
    $listener->quit;
};

# The server resets the latch of whoever waits for a lock: what came meanwhile must not be forgotten with it. The round
# that stores the marks writes no timers, whose commit would set the latch again.
subtest 'a timer while a round waits that fires nothing' => sub {
    my %in = database_with_far_timer('waiting');
    $server->sql("select plan('first', '0')", $in{database});
    $server->wait_until('select count(*) from timers.safe_mark', %in, expected => '1');
    $server->wait_for_sleep($in{database});
    my $session = $server->session($in{database});
    $session->query_safe('begin; lock table timers.safe_mark in access exclusive mode');
    $server->sql("select plan('before', '0')", $in{database});
    $server->delivered_ok('before', 'a timer is delivered', %in);
    # Past deadlock_timeout, whose signal sets the latch, too.
    my $dispatcher = TimerServer::worker_pid_query('dispatcher', $in{database});
    $server->wait_until("select exists (select from pg_locks
        where pid = ($dispatcher) and not granted and waitstart < clock_timestamp() - interval '1500 ms')", %in);
    $server->sql("select plan('amid', '0', 'another lane')", $in{database});
    $session->query_safe('commit');
    $session->quit;
    $server->delivered_ok('amid', 'so is one that came while the dispatcher stored the mark', %in, seconds => 20);
};

subtest 'rows that nobody scheduled by function' => sub {
    my %in = database_with_far_timer('by_hand');
    my $columns = 'timer_id, process_manager, correlation_id, fire_at';
    $server->sql("insert into timers.timer ($columns) values (id('inserted'), 'orders', 'inserted', clock_timestamp())",
        $in{database});
    $server->delivered_ok('inserted', 'INSERT', %in, seconds => 10);
    $server->sql("
        set session_replication_role = replica;
        insert into timers.timer ($columns) values (id('applied'), 'replicated', 'applied', clock_timestamp())",
        $in{database});
    $server->delivered_ok('applied', 'INSERT as a subscription does it', %in, seconds => 10);
    $server->sql("copy timers.timer ($columns) from stdin;
00000000-0000-4000-8000-000000000001\torders\tcopied\t2001-01-01 00:00:00+00
00000000-0000-4000-8000-000000000002\torders\tcopied too\t2001-01-01 00:00:00+00
\\.
", $in{database});
    $server->delivered_ok($_, 'COPY', %in, seconds => 10) for 'copied', 'copied too';
    $server->sql("update timers.timer set fire_at = clock_timestamp() where correlation_id = 'far'", $in{database});
    $server->delivered_ok('far', 'UPDATE', %in, seconds => 10);
};

done_testing();

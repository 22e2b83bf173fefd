# A timer that was moved, cancelled or paused fires at the last time that was asked for, once, or not at all.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0);

subtest 're-armed earlier' => sub {
    my %in = (database => $server->new_database('advanced'));
    $server->sql("select plan('moved', '1 hour'), plan('far', '2 hours')", $in{database});
    $server->wait_for_sleep($in{database});
    is($server->sql("select plan('moved', '200 ms')", $in{database}), 'rearmed', 'the timer is moved');
    $server->delivered_ok('moved', 'it is delivered', %in, seconds => 10);
};

subtest 're-armed later' => sub {
    my %in = (database => $server->new_database('postponed'));
    $server->sql("select plan('moved', '300 ms'); select plan('moved', '1 hour')", $in{database});
    $server->sql("select plan('fence', '600 ms')", $in{database});
    $server->delivered_ok('fence', 'a timer due after the first time', %in);
    is($server->delivered($in{database}), 'fence', 'the postponed timer is not delivered then');
    is($server->sql("select status('moved')", $in{database}), 'scheduled', 'it is still scheduled');
    $server->sql("select plan('moved', '100 ms')", $in{database});
    $server->delivered_ok('moved', 'pulled back in, it is delivered', %in, seconds => 10);
};

subtest 'fifty postponements' => sub {
    my %in = (database => $server->new_database('debounced'));
    # Each in a transaction of its own, across several moments at which the timer would have been due.
    $server->sql(join("\n", map { "select plan('pushed', '300 ms'); select pg_sleep(0.02);" } 1 .. 50), $in{database});
    $server->sql("select plan('pushed', '200 ms')", $in{database});
    my $last = $server->sql("select fire_at from timers.timer where correlation_id = 'pushed'", $in{database});
    $server->delivered_ok('pushed', 'one delivery', %in);
    is($server->sql("select fire_at from timers.outbox", $in{database}), $last, 'at the last time');
    $server->sql("select plan('fence', '100 ms')", $in{database});
    $server->delivered_ok('fence', 'a later timer', %in);
    is($server->delivered($in{database}), 'fence pushed', 'no second delivery');
};

subtest 'moved by a transaction that rolls back while the timer is due' => sub {
    my %in = (database => $server->new_database('contended'));
    my $session = $server->session($in{database});
    $session->query_safe("select plan('kept', '400 ms'); begin; select plan('kept', '1 hour')");
    $server->sql("select plan('fence', '600 ms')", $in{database});
    $server->delivered_ok('fence', 'the lane goes on', %in);
    is($server->delivered($in{database}), 'fence', 'the timer waits for the transaction that holds it');
    $session->query_safe('rollback');
    $server->delivered_ok('kept', 'the time that was committed holds', %in, seconds => 10);
    $session->query_safe("select plan('gone', '400 ms'); begin; select timers.cancel(id('gone'))");
    $server->sql("select plan('fence 2', '600 ms')", $in{database});
    $server->delivered_ok('fence 2', 'the lane goes on', %in);
    $session->query_safe('commit');
    $server->sql("select plan('fence 3', '100 ms')", $in{database});
    $server->delivered_ok('fence 3', 'and after a cancellation, too', %in);
    is($server->delivered($in{database}), 'fence fence 2 fence 3 kept',
        'what was cancelled while due is not delivered');
    $session->quit;
};

subtest 'cancelled' => sub {
    my %in = (database => $server->new_database('cancelled'));
    is($server->sql("
        select from (select plan('dropped', '300 ms'), plan('saved', '300 ms')) planned;
        select timers.cancel(id('dropped'));
        begin; select timers.cancel(id('saved')); rollback", $in{database}), "t\nt", 'one of two timers is cancelled');
    $server->sql("select plan('fence', '500 ms')", $in{database});
    $server->delivered_ok($_, "\"$_\" is delivered", %in) for 'fence', 'saved';
    is($server->delivered($in{database}), 'fence saved', 'the cancelled timer is not');
    is($server->sql("select plan('dropped', '0')", $in{database}), 'too_late', 'nor does it come back');
    is($server->sql("select plan('saved', '0')", $in{database}), 'too_late', 'nor does one that has fired');
    is($server->sql("select timers.cancel(id('saved'))", $in{database}), 'f', 'what has fired is not cancelled');
    $server->sql("select plan('fence 2', '0')", $in{database});
    $server->delivered_ok('fence 2', 'a later timer', %in);
    is($server->delivered($in{database}), 'fence fence 2 saved', 'all is delivered once');
};

subtest 'cancelled by correlation id' => sub {
    my %in = (database => $server->new_database('correlated'));
    my $schedule = "timers.schedule_in(gen_random_uuid()";
    is($server->sql("
        do \$\$ begin
            perform $schedule, 'orders', 'order 1', '300 ms') from generate_series(1, 3);
            perform $schedule, 'orders', 'order 2', '300 ms'), $schedule, 'other', 'order 1', '300 ms');
        end \$\$;
        select timers.cancel_correlation('orders', 'order 1')", $in{database}), '3', 'three of five are cancelled');
    $server->await_ok("select string_agg(process_manager || ' ' || correlation_id, ', ' order by process_manager)
        from timers.outbox", 'what is left is delivered', %in, expected => 'orders order 2, other order 1');
};

subtest 'paused' => sub {
    my %in = (database => $server->new_database('paused'));
    $server->sql("select plan('first', '0')", $in{database});
    $server->delivered_ok('first', 'before the pause', %in);
    is($server->sql("select timers.pause('orders')", $in{database}), 't', 'a lane is paused');
    $server->sql("select plan('held', '100 ms'), plan('held past', '-1 hour'), plan('dropped', '0'),
        plan('fence', '200 ms', 'other')", $in{database});
    $server->delivered_ok('fence', 'another lane goes on', %in);
    is($server->delivered($in{database}), 'fence first', 'the paused one does not');
    $server->sql("select timers.cancel(id('dropped'))", $in{database});
    is($server->sql("begin; select timers.unpause('orders'); rollback", $in{database}), 't', 'not unpaused after all');
    $server->sql("select plan('fence 2', '100 ms', 'other')", $in{database});
    $server->delivered_ok('fence 2', 'another lane goes on', %in);
    is($server->delivered($in{database}), 'fence fence 2 first', 'the paused one does not');
    is($server->sql("select timers.unpause('orders')", $in{database}), 't', 'the lane is unpaused');
    $server->delivered_ok($_, "\"$_\" is delivered", %in, seconds => 10) for 'held', 'held past';
    is($server->delivered($in{database}), 'fence fence 2 first held held past', 'the cancelled timer is not');
};

subtest 'moved to another lane' => sub {
    my %in = (database => $server->new_database('moved_lane'));
    $server->sql("select plan('mover', '1 hour')", $in{database});
    $server->wait_for_sleep($in{database});
    $server->sql("select plan('mover', '100 ms', 'other')", $in{database});
    $server->delivered_ok('mover', 'the timer is delivered', %in, seconds => 10);
    is($server->sql("select process_manager from timers.outbox", $in{database}), 'other', 'by the lane it moved to');
};

done_testing();

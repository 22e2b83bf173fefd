# A timer of a prepared transaction fires once that is committed, however late, and is in nobody's way until then.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', conf => 'max_prepared_transactions = 10');

sub prepare {
    my ($name, $work, $database, $before) = @_;
    $server->sql(($before // '') . "begin; $work; prepare transaction '$name'", $database);
    return;
}

# The longer a prepared transaction is there the less often the dispatcher looks by itself; this one waits for a while.
my $forgotten = $server->new_database('forgotten');
prepare('forgotten', "select plan('forgotten', '0')", $forgotten);

subtest 'COMMIT PREPARED after the timer was due' => sub {
    my %in = (database => $server->new_database('late'));
    $server->sql("select plan('far', '1 hour')", $in{database});
    prepare('late', "select plan('late', '0'), plan('new lane', '0', 'new'), plan('far', '100 ms')", $in{database});
    $server->sql("select plan('fence', '300 ms')", $in{database});
    $server->delivered_ok('fence', 'a later timer of the lane is delivered', %in);
    is($server->delivered($in{database}), 'fence', 'a prepared one is not');
    $server->sql("commit prepared 'late'", $in{database});
    $server->delivered_ok($_, "committed, \"$_\" is delivered", %in, seconds => 10) for 'late', 'new lane', 'far';
};

subtest 'COMMIT PREPARED before the timer is due' => sub {
    my %in = (database => $server->new_database('early'));
    prepare('early', "select plan('early', '1 s')", $in{database});
    $server->sql("commit prepared 'early'", $in{database});
    $server->delivered_ok('early', 'the timer is delivered', %in, seconds => 10);
    is($server->sql('select fired_at >= fire_at from timers.outbox', $in{database}), 't', 'when it is due');
};

subtest 'ROLLBACK PREPARED' => sub {
    my %in = (database => $server->new_database('undone'));
    prepare('undone', "select plan('undone', '0'), plan('moved', '2 hours'), timers.cancel(id('dropped')),
        plan('far', '0')", $in{database},
        "select plan('moved', '300 ms'), plan('dropped', '300 ms'), plan('far', '1 hour');");
    $server->sql("select plan('fence', '500 ms')", $in{database});
    $server->delivered_ok('fence', 'a later timer is delivered', %in);
    is($server->delivered($in{database}), 'fence', 'what the prepared transaction holds is not');
    $server->sql("rollback prepared 'undone'", $in{database});
    $server->delivered_ok($_, "what was moved or cancelled is delivered: \"$_\"", %in, seconds => 10)
        for 'moved', 'dropped';
    $server->sql("select plan('fence 2', '0')", $in{database});
    $server->delivered_ok('fence 2', 'and a later timer', %in);
    is($server->delivered($in{database}), 'dropped fence fence 2 moved', 'nothing else is');
};

subtest 'several, ended in another order' => sub {
    my %in = (database => $server->new_database('several'));
    prepare("several $_", "select plan('timer $_', '0')", $in{database}) for 1 .. 4;
    $server->sql("commit prepared 'several 3'", $in{database});
    $server->delivered_ok('timer 3', 'the first to be committed', %in, seconds => 10);
    $server->sql("rollback prepared 'several 1'", $in{database});
    $server->sql("commit prepared 'several 2'", $in{database});
    $server->delivered_ok('timer 2', 'the second', %in, seconds => 10);
    $server->sql("commit prepared 'several 4'", $in{database});
    $server->delivered_ok('timer 4', 'the last', %in, seconds => 10);
    is($server->delivered($in{database}), 'timer 2 timer 3 timer 4', 'and no other');
};

subtest 'what else a prepared transaction can hold' => sub {
    my %in = (database => $server->new_database('others'));
    prepare('pause', "select timers.pause('orders'), plan('held', '0')", $in{database});
    $server->sql("select plan('fence', '0', 'other')", $in{database});
    $server->delivered_ok('fence', 'another lane goes on', %in);
    $server->sql("commit prepared 'pause'; select plan('fence 2', '0', 'other')", $in{database});
    $server->delivered_ok('fence 2', 'another lane goes on', %in);
    is($server->delivered($in{database}), 'fence fence 2', 'a pause holds from COMMIT PREPARED on');
    prepare('unpause', "select timers.unpause('orders')", $in{database});
    $server->sql("commit prepared 'unpause'", $in{database});
    $server->delivered_ok('held', 'and so does its end', %in, seconds => 10);
};

subtest 'a prepared transaction that was forgotten for long' => sub {
    my %in = (database => $forgotten);
    $server->wait_until("select prepared < now() - interval '8500 ms' from pg_prepared_xacts");
    $server->sql("commit prepared 'forgotten'", $in{database});
    $server->delivered_ok('forgotten', 'COMMIT PREPARED itself wakes the dispatcher', %in, seconds => 5);
};

# The stored mark must stay below what nobody can see yet: after a restart nothing else tells of it.
for my $mode ('fast', 'immediate') {
    subtest "$mode shutdown" => sub {
        my %in = (database => $server->new_database("restarted_$mode"));
        my $before = $server->sql('select clock_timestamp()');
        prepare($mode, "select plan('prepared', '0'), plan('later', '1 hour')", $in{database});
        prepare("$mode undone", "select plan('undone', '0')", $in{database});
        $server->sql("select plan('fence', '0')", $in{database});
        $server->delivered_ok('fence', 'a later timer is delivered', %in);
        my $passes = $server->sql('select passes from timers.workers', $in{database});
        $server->wait_until("select passes > $passes + 1 from timers.workers", %in);
        is($server->sql("select count(*) from timers.safe_mark where safe_at > '$before'", $in{database}),
            '0', 'no mark is stored beyond it');
        $server->stop($mode);
        $server->start;
        $server->sql("select plan('fence 2', '0')", $in{database});
        $server->delivered_ok('fence 2', 'after the restart a timer is delivered', %in);
        is($server->delivered($in{database}), 'fence fence 2', 'what is still prepared is not');
        $server->sql("commit prepared '$mode'; rollback prepared '$mode undone'", $in{database});
        $server->delivered_ok('prepared', 'it is once it is committed', %in, seconds => 10);
        $server->await_ok("select count(*) > 0 from timers.safe_mark where safe_at > '$before'",
            'then the mark is stored', %in);
        is($server->delivered($in{database}), 'fence fence 2 prepared', 'each is delivered once');
        is($server->sql("select status('later')", $in{database}), 'scheduled', 'what is not due waits');
    };
}

done_testing();

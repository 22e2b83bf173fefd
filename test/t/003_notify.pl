# Delivery by NOTIFY is at least once: a claim goes out with the message, and what nobody acknowledges comes again.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use JSON::PP;
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0);

# A database with a lane "calls" that notifies a channel of its name, and a session that listens there.
sub listen_in {
    my ($database, %settings) = @_;
    $server->new_database($database);
    my $more = join('', map { ", $_ => $settings{$_}" } sort keys %settings);
    $server->sql("select timers.configure('calls', delivery => 'notify', channel => '$database'$more)", $database);
    my $listener = $server->session($database);
    $listener->query_safe("listen $database");
    return ($listener, database => $database);
}

sub messages {
    my ($listener, $count) = @_;
    return map { decode_json($_->[1]) } TimerServer::notifications($listener, $count);
}

subtest 'a message and its acknowledgement' => sub {
    my ($listener, %in) = listen_in('acknowledged');
    $server->sql("select timers.schedule(id('call'), 'calls', 'call', clock_timestamp() + interval '100 ms',
        '{\"to\": [\"Zo\\u00eb\", 1]}')", $in{database});
    my ($message) = messages($listener, 1);
    my $timer = $server->sql("select id('call')", $in{database});
    is($message->{timer_id}, $timer, 'the message names the timer');
    is_deeply([ @$message{ 'process_manager', 'correlation_id', 'attempt' } ], [ 'calls', 'call', 1 ],
        'and what it is');
    is_deeply($message->{payload}, { to => [ "Zo\x{eb}", 1 ] }, 'and its payload');
    is($server->sql("select fire_at = '$message->{fire_at}' from timers.timer", $in{database}), 't', 'and its time');
    ok(!exists $message->{fetch}, 'nothing is left to be fetched');
    is($server->sql("select status || ' ' || attempts from timers.timer", $in{database}), 'firing 1', 'it is firing');

    my $event = '00000000-0000-4000-8000-0000000000ee';
    like($server->sql_error("select timers.mark_fired('$timer', '$event', '$event')", $in{database}),
        qr/^TM003 /, 'another token does not complete it');
    is($server->sql("select timers.mark_fired('$timer', '$event', '$message->{claim_token}')", $in{database}),
        't', 'the token of the message does');
    is($server->sql("select status || ' ' || fired_event_id from timers.timer", $in{database}),
        "fired $event", 'it has fired');
    is($server->sql("select count(*) from timers.claim", $in{database}), '0', 'no claim is left');
    like($server->sql_error("select timers.mark_fired('$timer', '$event', '$message->{claim_token}')", $in{database}),
        qr/^TM003 /, 'the token completes it once');
    is($server->sql("select count(*) from timers.outbox", $in{database}), '0', 'the outbox has no part in it');
    $listener->quit;
};

subtest 'a lease that runs out' => sub {
    my ($listener, %in) = listen_in('lapsed', lease => "'1500 ms'");
    $server->sql("select plan('call', '0', 'calls')", $in{database});
    my ($first) = messages($listener, 1);
    my ($second) = messages($listener, 1);
    my $timer = $server->sql("select id('call')", $in{database});
    is_deeply([ @$second{ 'timer_id', 'attempt' } ], [ $timer, 2 ], 'the timer comes again, as its second attempt');
    is($second->{fire_at}, $first->{fire_at}, 'with the same time');
    isnt($second->{claim_token}, $first->{claim_token}, 'under another claim');
    like($server->sql_error("select timers.mark_fired('$timer', id('e'), '$first->{claim_token}')", $in{database}),
        qr/^TM003 /, 'the first claim no longer holds');
    my ($third) = messages($listener, 1);
    is($server->sql("select timers.renew('$timer', '$third->{claim_token}', '1 hour') > now() + interval '59 min'",
        $in{database}), 't', 'a claim can be renewed');
    # Whatever the old lease would have brought is there before this one's second attempt.
    $server->sql("select plan('fence', '0', 'calls')", $in{database});
    is_deeply([ map { $_->{attempt} } messages($listener, 2) ], [ 1, 2 ], 'then it does not lapse');
    is($server->sql("select timers.mark_fired('$timer', id('e'), '$third->{claim_token}')", $in{database}),
        't', 'and completes the timer');
    $listener->quit;
};

subtest 'a listener that gives a timer back' => sub {
    my ($listener, %in) = listen_in('released');
    $server->sql("select plan('call', '0', 'calls')", $in{database});
    my ($first) = messages($listener, 1);
    is($server->sql("select timers.release('$first->{timer_id}', '$first->{claim_token}',
        clock_timestamp() + interval '500 ms', 'busy');
        select status || ' ' || last_error from timers.timer", $in{database}), "t\nscheduled busy",
        'the timer is released, with a reason');
    my ($second) = messages($listener, 1);
    is($second->{attempt}, 2, 'it comes again');
    is($server->sql("select fire_at = '$second->{fire_at}' and fire_at > '$first->{fire_at}' from timers.timer",
        $in{database}), 't', 'at the new time');
    $listener->quit;
};

subtest 'the ceiling of attempts' => sub {
    my ($listener, %in) = listen_in('exhausted', lease => "'300 ms'", max_attempts => 2);
    $server->sql("select plan('call', '0', 'calls')", $in{database});
    is_deeply([ map { $_->{attempt} } messages($listener, 2) ], [ 1, 2 ], 'two attempts are made');
    $server->await_ok("select status('call')", 'then the timer is dead', %in, expected => 'dead');
    is($server->sql("select last_error || ' ' || (died_at is not null) from timers.timer", $in{database}),
        'timer exceeded attempt ceiling of 2 true', 'with the reason');
    is($server->sql("select count(*) from timers.claim", $in{database}), '0', 'nobody holds it');
    $server->sql("select timers.configure('none', delivery => 'notify', channel => 'exhausted', max_attempts => 0);
        select plan('never', '0', 'none')", $in{database});
    $server->await_ok("select status('never')", 'with a ceiling of 0 nothing is attempted', %in, expected => 'dead');
    is($server->sql("select last_error from timers.timer where correlation_id = 'never'", $in{database}),
        'timer exceeded attempt ceiling of 0', 'with the reason');
    $server->sql("select timers.configure('probe', delivery => 'notify', channel => 'exhausted');
        select plan('probe', '0', 'probe')", $in{database});
    my @messages = messages($listener, 1);
    is_deeply([ map { $_->{process_manager} } @messages ], ['probe'], 'no message was sent for the dead');
    $listener->quit;
};

subtest 'a payload that fits in no message' => sub {
    my ($listener, %in) = listen_in('big');
    # Multi-byte characters count as bytes.
    $server->sql("select timers.schedule(id(name), 'calls', name, clock_timestamp() + wait, payload)
        from (values ('small', '0'::interval, to_jsonb(repeat('x', 7000))),
                     ('bytes', '100 ms', to_jsonb(repeat('\x{c3}\x{a9}', 4000))),
                     ('huge', '200 ms', to_jsonb(repeat('x', 1000000)))) t (name, wait, payload)", $in{database});
    my %message = map { $_->{timer_id} => $_ } messages($listener, 3);
    my %got = map { $_ => $message{ $server->sql("select id('$_')", $in{database}) } } qw(small bytes huge);
    is(length $got{small}{payload}, 7000, 'a payload of 7000 bytes travels along');
    for my $name ('bytes', 'huge') {
        ok($got{$name}{fetch} && !exists $got{$name}{payload}, "\"$name\" is to be fetched");
        is($server->sql("select timers.mark_fired('$got{$name}{timer_id}', id('e'), '$got{$name}{claim_token}')",
            $in{database}), 't', 'its token holds');
    }
    is($server->sql("select length(payload #>> '{}') from timers.lookup(id('huge'))", $in{database}),
        '1000000', 'lookup() fetches it');

    # Every length around the limit, wherever it lies.
    $server->sql("select timers.schedule(id('p' || n), 'calls', 'p', clock_timestamp(), to_jsonb(repeat('x', n)))
        from generate_series(7600, 7900) n", $in{database});
    my @messages = messages($listener, 301);
    my @carried = sort { $a <=> $b } map { length $_->{payload} } grep { !$_->{fetch} } @messages;
    is_deeply(\@carried, [ 7600 .. $carried[-1] ], 'up to a limit, payloads travel along');
    cmp_ok($carried[-1], '<', 7900, 'beyond it, they do not');
    $listener->quit;
};

done_testing();

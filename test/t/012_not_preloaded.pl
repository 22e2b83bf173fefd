# Where the library is not preloaded every function works, fire_due() fires, and the server says why nothing else does.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use JSON::PP;
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', preload => 0);

subtest 'why nothing fires by itself' => sub {
    is($server->sql('select worker, state, pid from timers.workers'), 'dispatcher|not preloaded|', 'the state is told');
    like($server->sql('select explanation from timers.workers'), qr/shared_preload_libraries/, 'and what to do');
    is($server->sql("select count(*) from pg_stat_activity where backend_type like 'durable_timers%'"), '0',
        'there are no workers');
};

subtest 'what can be told without shared memory' => sub {
    $server->sql("select plan('told', '1 hour', 'told'), plan('told too', '-1 day', 'told')");
    is($server->sql("select scheduled, due, oldest_overdue >= '1 day', next_due > now(), inexact,
            explanation ~ 'preload'
        from timers.overview"), '2|1|t|t|{}|t', 'what is there is counted');
    is($server->sql("select count(*) > 20, count(*) filter (where (value is null) = (type = 'gauge'))
        from timers.metrics"), 't|0', 'what happened is unknown');
    is($server->sql("select value from timers.metrics where name = 'timer.dispatcher.running'"), '0', 'nothing runs');
    my $text = $server->sql('select timers.prometheus()');
    like($text, qr/^durable_timers_backlog\{process_manager="told"\} 1$/m, 'Prometheus hears of what is known');
    unlike($text, qr/_total|_bucket/, 'and of nothing else');
    $server->sql('delete from timers.timer; delete from timers.process_manager');
};

subtest 'fire_due' => sub {
    $server->sql("select plan('due', '0'), plan('due too', '-1 day', 'other'), plan('later', '1 hour')");
    is($server->sql('select timers.fire_due()'), '2', 'it fires what is due');
    is($server->delivered, 'due due too', 'into the outbox');
    is($server->sql('select timers.fire_due()'), '0', 'once');
    is($server->sql("begin; select timers.fire_due(now() + interval '2 hours'); rollback"), '1', 'or what will be');
    is($server->sql("begin; select plan('own', '0'); select timers.fire_due(); rollback"), "inserted\n1",
        'and the timers of its own transaction');
    is($server->delivered, 'due due too', 'a rollback takes it all back');
    $server->sql("select plan('n' || n, '-1 min') from generate_series(1, 10) n");
    is($server->sql("select timers.fire_due(max_timers => 4)"), '4', 'no more than it is told to');
    is($server->sql("select timers.fire_due()"), '6', 'the rest next time');
    is($server->sql("select timers.fire_due(now() + interval '2 hours')"), '1', 'and what lay ahead');
};

subtest 'a transaction that commits behind a pass' => sub {
    my $session = $server->session;
    $session->query_safe("begin; select plan('slow', '0')");
    $server->sql("select plan('quick', '0')");
    is($server->sql('select timers.fire_due()'), '1', 'a pass fires what it sees');
    is($server->sql('select timers.fire_due()'), '0', 'and the next sees no more');
    $session->query_safe('commit');
    is($server->sql('select timers.fire_due()'), '1', 'the next after the commit does');
    $session->query_safe("select plan('moved', '1 hour'); begin; select plan('moved', '0')");
    is($server->sql('select timers.fire_due()'), '0', 'the same for one that is pulled in');
    $session->query_safe('commit');
    is($server->sql('select timers.fire_due()'), '1', 'after its commit');
    $session->quit;
    is($server->sql('select count(*) - count(distinct timer_id) from timers.outbox'), '0', 'nothing twice');
};

subtest 'a claim that nobody acknowledges' => sub {
    $server->sql("select timers.configure('asked', delivery => 'notify', channel => 'asked', lease => '1 ms'),
        plan('asked', '0', 'asked')");
    is($server->sql('select timers.fire_due()'), '1', 'the timer is sent');
    $server->wait_for_clock("select max(lease_until) from timers.claim");
    is($server->sql('select timers.fire_due()'), '1', 'and sent again by the first pass after its lease');
    is($server->sql("select timers.mark_fired(id('asked'), id('event')), attempts from timers.lookup(id('asked'))"), 't|2',
        'until it is acknowledged');
};

subtest 'rows that are locked' => sub {
    my $session = $server->session;
    $session->query_safe("select plan('locked', '0'); begin;
        select from timers.timer where correlation_id = 'locked' for update");
    $server->sql("select plan('free', '0')");
    is($server->sql('select timers.fire_due()'), '1', 'are passed over');
    $session->query_safe('commit');
    is($server->sql('select timers.fire_due()'), '1', 'and fired when they are free');
    $session->quit;
};

subtest 'every function' => sub {
    is($server->sql("select timers.timer_id('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'www.example.com')"),
        '2ed6657d-e927-568b-95e1-2665a8aea6a2', 'timer_id');
    is($server->sql("select timers.schedule(id('a'), 'f', 'a', now() + interval '1 hour', '{\"n\": 1}')"), 'inserted',
        'schedule');
    is($server->sql("select timers.schedule_in(id('a'), 'f', 'a', '2 hours', mode => 'earlier')"), 'kept',
        'schedule_in');
    is($server->sql("select timers.schedule_once(id('a'), 'f', 'a', now())"), 'f', 'schedule_once');
    is($server->sql("select status, payload from timers.lookup(id('a'))"), 'scheduled|{"n": 1}', 'lookup');
    is($server->sql("select timers.cancel(id('a'))"), 't', 'cancel');
    is($server->sql("select plan('b', '0', 'f'), timers.cancel_correlation('f', 'b')"), 'inserted|1',
        'cancel_correlation');
    $server->sql("select timers.configure('mine', delivery => 'external', lease => '1 hour');
        select plan('claimed', '0', 'mine'), plan('returned', '0', 'mine'), plan('stuck', '0', 'mine')");
    my %token = map { split /\|/ } split /\n/, $server->sql("select correlation_id, claim_token
        from timers.claim_due('mine', 3)");
    is_deeply([ sort keys %token ], [qw(claimed returned stuck)], 'claim_due');
    is($server->sql("select timers.renew(id('claimed'), '$token{claimed}', '2 hours') > now() + interval '1 hour'"),
        't', 'renew');
    is($server->sql("select timers.mark_fired(id('claimed'), id('e'), '$token{claimed}')"), 't', 'mark_fired');
    is($server->sql("select timers.release(id('returned'), '$token{returned}', now() + interval '1 hour', 'busy')"),
        't', 'release');
    is($server->sql("select timers.requeue_stuck(as_of => now() + interval '90 min')"), '1', 'requeue_stuck');
    is($server->sql("select status('claimed'), status('returned'), status('stuck')"), 'fired|scheduled|scheduled',
        'what became of them');
    $server->sql("select plan('held', '0', 'p')");
    is($server->sql("select timers.pause('p'), timers.fire_due()"), 't|0', 'pause');
    is($server->sql("select timers.unpause('p')"), 't', 'unpause');
    is($server->sql('select timers.fire_due()'), '1', 'and the pause is over');
    is($server->sql("select correlation_id from timers.take_events(5, 'p')"), 'held', 'take_events');
};

subtest 'delivery by NOTIFY' => sub {
    $server->sql("select timers.configure('calls', delivery => 'notify', channel => 'calls', lease => '1 hour');
        select timers.configure('bell', channel => 'bell')");
    my $listener = $server->session;
    $listener->query_safe('listen calls; listen bell');
    $server->sql("select plan('call', '0', 'calls'), plan('ring', '0', 'bell')");
    is($server->sql('select timers.fire_due()'), '2', 'fire_due sends');
    my %payload = map { @$_ } TimerServer::notifications($listener, 2);
    is($payload{bell}, '', 'the doorbell');
    my $message = decode_json($payload{calls});
    is($server->sql("select timers.mark_fired('$message->{timer_id}', id('e'), '$message->{claim_token}')"), 't',
        'and messages that can be acknowledged');
    $listener->quit;
};

# Marks that passes in sessions have stored must be good for a dispatcher, and the other way round.
subtest 'preloaded in the end, and not again' => sub {
    $server->sql("select plan('before ' || n, '-1 hour', 'lane ' || n) from generate_series(1, 5) n;
        select plan('after ' || n, '2 s', 'lane ' || n) from generate_series(1, 5) n");
    $server->append_conf('postgresql.conf', "shared_preload_libraries = 'durable_timers'");
    $server->restart;
    $server->await_ok("select count(*) from timers.outbox where correlation_id ~ '^(before|after)'",
        'a dispatcher delivers what was scheduled without it', expected => '10');
    is($server->sql('select state from timers.workers'), 'running', 'it runs');
    $server->sql("select plan('pending ' || n, '2 s', 'lane ' || n) from generate_series(1, 5) n");
    $server->adjust_conf('postgresql.conf', 'shared_preload_libraries', undef);
    $server->restart;
    $server->wait_for_clock("select max(fire_at) from timers.timer where correlation_id like 'pending%'");
    is($server->sql("select count(*) from timers.outbox where correlation_id like 'pending%'"), '0',
        'without it nothing fires by itself');
    is($server->sql('select timers.fire_due()'), '5', 'fire_due finds it');
    is($server->sql('select count(*) - count(distinct timer_id) from timers.outbox'), '0', 'nothing twice');
};

done_testing();

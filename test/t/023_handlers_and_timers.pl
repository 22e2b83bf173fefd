# A handler may schedule, cancel and debounce timers, its own included; who takes its timer away undoes its work.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use HandlerServer;
use PostgreSQL::Test::Utils;
use Test::More;

my $server = HandlerServer->start_new('main');
$server->sql('grant execute on all functions in schema public to app');

subtest 'other timers' => sub {
    $server->add_handler('scheduling', "
        perform timers.schedule(timers.timer_id(t.timer_id, 'event'), 'orders', 'an event', now());
        perform timers.schedule(timers.timer_id(t.timer_id, 'next'), 'chain', 'first of a chain', now(),
            '{\"left\": 3}');
        perform timers.schedule_in(timers.timer_id(t.timer_id, 'new lane'), 'a lane of its own', 'new lane', '200 ms');
        perform * from timers.schedule_many(array[row(timers.timer_id(t.timer_id, 'many'), 'orders', 'many', now(),
            '{}')::timers.timer_request]);
        return t.timer_id;");
    # Each schedules the next.
    $server->add_handler('chain', "call public.took_effect(t, t.payload->>'left');
        if (t.payload->>'left')::int > 0 then
            perform timers.schedule(timers.timer_id(t.timer_id, 'next'), 'chain', 'link', now(),
                jsonb_build_object('left', (t.payload->>'left')::int - 1));
        end if;
        return t.timer_id;");
    $server->sql("select plan('scheduler', '0', 'scheduling')");
    $server->fate_ok('scheduler', 'fired 1', 'a handler schedules timers');
    $server->delivered_ok($_, "delivered: $_") for 'an event', 'new lane', 'many';
    $server->await_ok("select string_agg(note, ' ' order by position) from effect 
        where name in ('link', 'first of a chain')",
        'and timers for its own kind', expected => '3 2 1 0');

    $server->add_handler('cancelling', "perform timers.cancel(public.id('to be cancelled'));
        perform timers.cancel_correlation('orders', 'to be cancelled, too'); return t.timer_id;");
    $server->sql("select plan('to be cancelled', '1 h'), plan('to be cancelled, too', '1 h'),
        plan('canceller', '0', 'cancelling')");
    $server->fate_ok('canceller', 'fired 1', 'a handler cancels timers');
    is($server->sql("select status('to be cancelled') || ' ' || status('to be cancelled, too')"), 'cancelled cancelled',
        'they are cancelled');

    $server->add_handler('debouncing', "call public.took_effect(t,
        timers.debounce(public.id('quiet'), 'orders', 'quiet',
        case t.correlation_id when 'turn 3' then interval '0' else interval '1 h' end)::text); return t.timer_id;");
    for my $n (1 .. 3) {
        $server->sql("select plan('turn $n', '0', 'debouncing')");
        $server->fate_ok("turn $n", 'fired 1', 'a handler debounces a timer');
    }
    is($server->sql("select effects('turn %')"), 'turn 1 1 inserted, turn 2 1 rearmed, turn 3 1 rearmed',
        'each is told');
    $server->delivered_ok('quiet', 'and it fires after the last');

    $server->add_handler('failing', "perform timers.schedule(public.id('never'), 'orders', 'never', now());
        perform timers.cancel(public.id('to stay')); raise exception 'no';", max_attempts => 1);
    $server->sql("select plan('to stay', '1 h'), plan('failer', '0', 'failing')");
    $server->fate_ok('failer', 'dead 1: timer exceeded attempt ceiling of 1', 'one that fails');
    is($server->sql("select status('to stay') || ' ' || coalesce(status('never'), 'none')"), 'scheduled none',
        'changes no timer');
    my $nobody = 'timers it may not touch';
    $server->sql("revoke execute on function timers.cancel(uuid) from app; select plan('$nobody', '0', 'cancelling')");
    $server->await_ok("select fate('$nobody') ~ '^scheduled .*: permission denied for function cancel'",
        'nor does one without the right');
    $server->sql("grant execute on function timers.cancel(uuid) to app");
    $server->await_ok("select status('$nobody')", 'until it is granted', expected => 'fired');
};

subtest 'its own timer' => sub {
    # What it does to itself, and what becomes of the timer when it returns a uuid, or null.
    my %own = (
        cancel => [ 'timers.cancel(t.timer_id)', 'true', 'cancelled 1' ],
        cancel_correlation => [ "timers.cancel_correlation(t.process_manager, t.correlation_id)", '1', 'cancelled 1' ],
        dead_letter => [ "timers.dead_letter(t.timer_id, 'given up')", 'true', 'dead 1: given up' ],
        mark_fired => [ "timers.mark_fired(t.timer_id, public.id('event'))", 'true', 'fired 1' ],
        schedule => [ 'timers.schedule(t.timer_id, t.process_manager, t.correlation_id, now())', 'too_late',
            'fired 1' ],
        schedule_once => [ 'timers.schedule_once(t.timer_id, t.process_manager, t.correlation_id, now())', 'false',
            'fired 1' ],
        debounce => [ "timers.debounce(t.timer_id, t.process_manager, t.correlation_id, '1 h')", 'too_late',
            'fired 1' ],
        retry_dead => [ 'timers.retry_dead(t.timer_id)', 'false', 'fired 1' ],
        purge => [ "timers.purge(now() + interval '1 h', true) > 0", 'true', 'fired 1' ],
        lookup => [ '(timers.lookup(t.timer_id)).status', 'firing', 'fired 1' ],
        count_stuck => [ 'timers.count_stuck()', '1', 'fired 1' ]);
    for my $action (sort keys %own) {
        my ($call, $answer, $fate) = @{ $own{$action} };
        my $lane = "own_$action";
        $server->add_handler($lane, "call public.took_effect(t, answer); return t.timer_id;",
            declare => "answer text := $call;");
        $server->sql("select plan('$lane', '0', '$lane')");
        $server->fate_ok($lane, $fate, "$action: $fate");
        is($server->sql("select effects('$lane')"), "$lane 1 $answer", "it is told: $answer, and its effect stands");
        is($server->sql("select fired_event_id = id('event') from timers.timer where correlation_id = '$lane'"), 't',
            'the event id that it gave itself stays') if $action eq 'mark_fired';
    }
    is($server->sql('select count(*) from timers.claim'), '0', 'no claim is left');

    for my $action ('cancel', 'dead_letter', 'mark_fired') {
        my ($call, undef, $fate) = @{ $own{$action} };
        $server->add_handler("null_$action", "perform $call; return null;");
        $server->sql("select plan('null $action', '0', 'null_$action')");
        $server->fate_ok("null $action", $fate, "$action, then null: $fate");
        $server->add_handler("undone_$action",
            "begin perform $call; raise exception 'undo'; exception when raise_exception
            then null; end; return t.timer_id;");
        $server->sql("select plan('undone $action', '0', 'undone_$action')");
        $server->fate_ok("undone $action", 'fired 1', "$action that is rolled back: fired");
        $server->add_handler("failed_$action", "perform $call; raise exception 'no';", retry_delay => '1 h');
        $server->sql("select plan('failed $action', '0', 'failed_$action')");
        $server->fate_ok("failed $action", 'scheduled 1: no', "$action, then an exception: retried");
    }
};

subtest 'its own worker' => sub {
    my %commands = (updater => 'alter extension durable_timers update',
        dropper => 'drop extension durable_timers cascade');
    for my $lane (sort keys %commands) {
        my $command = $commands{$lane};
        $server->add_handler($lane, "execute '$command'; return t.timer_id;", run_as => 'postgres', max_attempts => 2,
            retry_delay => '0');
        $server->sql("select plan('$lane', '0', '$lane')");
        $server->fate_ok($lane, 'dead 2: timer exceeded attempt ceiling of 2', "fails with $command");
    }
    like(slurp_file($server->logfile), qr/"updater" failed: a worker of durable_timers cannot run a command that sends/,
        'which the log explains');
};

subtest 'a timer that comes again and again' => sub {
    $server->add_handler('recurring', "call public.took_effect(t);
        if t.attempts < 5 then
            perform timers.requeue(t.timer_id);
            call public.took_effect(t, timers.schedule(t.timer_id, t.process_manager, t.correlation_id,
                t.fire_at + interval '50 ms')::text);
        end if;
        return t.timer_id;");
    $server->sql("select plan('recurring', '0', 'recurring')");
    $server->fate_ok('recurring', 'fired 5', 'it requeues and re-arms itself');
    is($server->sql("select effects('recurring')"), join(', ', map({ ("recurring $_", "recurring $_ rearmed") } 1 .. 4),
        'recurring 5'), 'each time once');
};

subtest 'what others do to it meanwhile' => sub {
    # The handler runs until a session lets go of a lock.
    $server->add_handler('held', 'call public.took_effect(t); perform pg_advisory_xact_lock_shared(10);
        return t.timer_id;', retry_delay => '10 ms', lease => '1 h');
    my $runs = "select exists (select from pg_locks where locktype = 'advisory' and objid = 10 and not granted)";
    my %others = (
        cancel => [ "timers.cancel(id('%s'))", 'cancelled 1', 0 ],
        dead_letter => [ "timers.dead_letter(id('%s'), 'by another')", 'dead 1: by another', 0 ],
        mark_fired => [ "timers.mark_fired(id('%s'), gen_random_uuid())", 'fired 1', 0 ],
        requeue => [ "timers.requeue(id('%s'))", 'fired 2', 2 ],
        requeue_stuck => [ "timers.requeue_stuck('1 ms')", 'fired 2', 2 ],
        pause => [ "timers.pause('held')", 'fired 1', 1 ],
        configure => [ "timers.configure('held', delivery => 'outbox')", 'fired 1', 1 ],
        schedule => [ "timers.schedule(id('%s'), 'held', '%s', now())", 'fired 1', 1 ],
        retry_dead => [ "timers.retry_dead(id('%s'))", 'fired 1', 1 ]);
    for my $action (sort keys %others) {
        my ($call, $fate, $effect) = @{ $others{$action} };
        my $holder = $server->session;
        $holder->query_safe('begin; select pg_advisory_xact_lock(10)');
        $server->sql("select plan('$action', '0', 'held')");
        $server->wait_until($runs);
        $server->sql('select ' . $call =~ s/%s/$action/gr);
        $holder->query_safe('commit');
        $holder->quit;
        $server->fate_ok($action, $fate, "$action while it runs: $fate");
        # The worker whose timer was taken away has ended its turn by then, too.
        $server->await_ok('select handlers_running()', 'no handler runs', expected => '0');
        is($server->sql("select effects('$action')"), $effect ? "$action $effect" : '', 'and its effects fit');
        $server->sql("select timers.unpause('held')");
        $server->handle_by('public.held', 'held');
    }
    my $holder = $server->session;
    $holder->query_safe('begin; select pg_advisory_xact_lock(10)');
    $server->sql("select plan('deleted', '0', 'held')");
    $server->wait_until($runs);
    $server->sql("delete from timers.timer where timer_id = id('deleted')");
    $holder->query_safe('commit');
    $holder->quit;
    $server->await_ok('select handlers_running()', 'one whose timer is deleted ends', expected => '0');
    is($server->sql("select effects('deleted')"), '', 'without effect');
    $server->sql("select plan('after', '0', 'held')");
    $server->fate_ok('after', 'fired 1', 'and others go on');
};

ok(slurp_file($server->logfile) !~ /exited with exit code|terminated by signal/, 'no worker failed in all this');

done_testing();

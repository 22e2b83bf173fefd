# timers.metrics counts what happened, once, if it was committed; timers.prometheus() says the same to Prometheus' own
# parser.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use HandlerServer;
use IPC::Run qw(run);
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Utils;
use Test::More;

my $server = HandlerServer->start_new('main', conf => 'max_prepared_transactions = 5');

# The counters of a process manager that are not zero, as 'name{label} value'.
sub counted_query {
    my ($lane) = @_;
    return "select coalesce(string_agg(name || coalesce('{' || label || '}', '') || ' ' || value, ', '
            order by name, label), 'nothing')
        from timers.metrics m left join lateral jsonb_each_text(m.labels) as l (key, label) on true
        where process_manager = '$lane' and value <> 0 and (type = 'counter' or name in ('timer.fire.lag.count',
            'timer.attempts.count', 'timer.attempts.sum'))";
}

sub counted_ok {
    my ($lane, $expected, $name, %with) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $lag = $expected =~ /timer\.attempts\.count (\d+)/ ? ", timer.fire.lag.count $1" : '';
    my %number = map { /^(\S+) / ? ($1 => $_) : () } split /, /, $expected . $lag;
    return $server->await_ok(counted_query($lane), $name, %with,
        expected => join(', ', map { $number{$_} } sort keys %number) || 'nothing');
}

sub metric {
    my ($name, $lane, $database) = @_;
    my $whose = defined $lane ? "= '$lane'" : 'is null';
    return $server->sql("select value from timers.metrics where name = '$name' and process_manager $whose", $database);
}

subtest 'into the outbox' => sub {
    $server->sql("select plan('o' || n, n * interval '1 ms') from generate_series(1, 5) n;
        select plan('far', '1 day')");
    counted_ok('orders', 'timer.attempts.count 5, timer.attempts.sum 5, timer.delivered{outbox} 5, timer.fired 5',
        'by the dispatcher');
    is(metric('timer.scheduled', 'orders'), 1, 'one waits');
    is($server->sql("select value from timers.metrics where name = 'timer.fire.lag' and labels ->> 'le' = '+Inf'
        and process_manager = 'orders'"), 5, 'each has its lag');
    $server->sql("begin; select plan('p', '0', 'undone'); select timers.fire_due(); rollback");
    counted_ok('undone', '', 'not what was rolled back');
    $server->sql("begin; select plan('s' || n, '0', 'partly') from generate_series(1, 3) n;
        savepoint a; select timers.fire_due(max_timers => 2); rollback to a;
        savepoint b; select timers.fire_due(max_timers => 1); release b;
        select timers.cancel(timer_id) from timers.timer where process_manager = 'partly' and status = 'scheduled'
        limit 1; commit");
    counted_ok('partly', 'timer.attempts.count 2, timer.attempts.sum 2, timer.cancelled 1, timer.delivered{outbox} 2,
        timer.fired 2' =~ s/\s+/ /gr, 'nor what a savepoint undid');
};

subtest 'by workers of one\'s own' => sub {
    $server->sql("select timers.configure('work', delivery => 'external', max_attempts => 3, lease => '1 hour');
        select plan('w1', '0', 'work')");
    for my $attempt (1 .. 3) {
        $server->sql("select count(timers.requeue(timer_id)) from timers.claim_due('work')");
    }
    counted_ok('work', 'timer.attempts.count 3, timer.attempts.sum 6, timer.delivered{external} 3, timer.requeued 3',
        'three claims, taken back as often');
    $server->sql("select count(*) from timers.claim_due('work')");
    counted_ok('work', 'timer.attempts.count 4, timer.attempts.sum 10, timer.dead_lettered 1,
        timer.delivered{external} 3, timer.requeued 3' =~ s/\s+/ /gr,
        'the ceiling is met by an attempt, not by a delivery');
    $server->sql("select timers.retry_dead(id('w1'), now() + interval '1 hour'), plan('w2', '0', 'work');
        select timers.mark_fired(timer_id, timer_id, claim_token) from timers.claim_due('work');
        select plan('w3', '0', 'work');
        select timers.release(timer_id, claim_token, now() + interval '1 hour') from timers.claim_due('work');
        select plan('w4', '1 hour', 'work'), timers.cancel(id('w4'));
        select plan('w5', '1 hour', 'work'), timers.dead_letter(id('w5'), 'enough')");
    counted_ok('work', 'timer.attempts.count 6, timer.attempts.sum 12, timer.cancelled 1, timer.dead_lettered 2,
        timer.delivered{external} 5, timer.fired 1, timer.requeued 3, timer.retried 1' =~ s/\s+/ /gr,
        'completed, released, cancelled, given up on, retried');
    my $before = $server->sql(counted_query('work'));
    $server->sql("select plan('w3', '1 h', 'work'), timers.cancel(id('w4')), timers.dead_letter(id('w5'), 'enough'),
        timers.requeue(id('w2'))");
    is($server->sql(counted_query('work')), $before, 'moving a timer, or doing nothing, counts as nothing');
    $server->sql("update timers.timer set status = 'resuming' where correlation_id = 'w5';
        update timers.timer set status = 'dead' where correlation_id = 'w5';
        update timers.timer set status = 'resuming' where correlation_id = 'w5';
        update timers.timer set status = 'fired' where correlation_id = 'w5'");
    is($server->sql("select string_agg((labels ->> 'outcome') || ' ' || value, ', ' order by labels ->> 'outcome')
        from timers.metrics where name = 'timer.resumes' and process_manager = 'work'"),
        'cancelled 0, claimed 2, dead 1, fired 1', 'resumes, by hand as well');
    $server->sql("select plan('w6', '0', 'work')");
    is($server->sql("select count(*) from timers.claim_due('work')"), 1, 'one more claim');
    is(metric('timer.firing', 'work'), 1, 'is one that fires');
};

subtest 'by notification' => sub {
    $server->sql("select timers.configure('calls', delivery => 'notify', channel => 'c', lease => '200 ms',
            max_attempts => 2);
        select plan('call', '0', 'calls')");
    counted_ok('calls', 'timer.attempts.count 3, timer.attempts.sum 6, timer.dead_lettered 1, timer.delivered{notify} 2,
        timer.requeued 2' =~ s/\s+/ /gr, 'sent twice, taken back twice, then dead');
};

subtest 'by a handler' => sub {
    $server->add_handler('handled', "if t.attempts < 3 then raise exception 'no'; end if; return t.timer_id;",
        retry_delay => '10 ms');
    $server->sql("select plan('handle', '0', 'handled')");
    counted_ok('handled', 'timer.attempts.count 3, timer.attempts.sum 6, timer.delivered{handler} 3, timer.fired 1,
        timer.handler.failures 2' =~ s/\s+/ /gr, 'two failures, then not');
};

subtest 'what is in the way' => sub {
    my $session = $server->session;
    $session->query_safe("select plan('locked', '200 ms', 'locked'); begin;
        select from timers.timer where correlation_id = 'locked' for update");
    $server->await_ok("select value >= 2 from timers.metrics
        where name = 'timer.skipped' and process_manager = 'locked'", 'rows that are locked are skipped');
    $session->quit;
    counted_ok('locked', 'timer.attempts.count 1, timer.attempts.sum 1, timer.delivered{outbox} 1, timer.fired 1, '
        . 'timer.skipped ' . metric('timer.skipped', 'locked'), 'and fired when they are free');
    $server->sql("
        create function public.refuse() returns trigger language plpgsql as
        \$\$ begin if new.attempts < 2 then raise exception 'not yet'; end if; return new; end \$\$;
        create trigger refuse before insert on timers.outbox for each row execute function public.refuse();
        select plan('refused', '0', 'refused')");
    counted_ok('refused', 'timer.attempts.count 2, timer.attempts.sum 3, timer.delivered{outbox} 1,
        timer.delivery.failures 1, timer.fired 1' =~ s/\s+/ /gr, 'one that raises an error is set back');
    $server->sql('drop trigger refuse on timers.outbox');
};

subtest 'the dispatcher' => sub {
    is(metric('timer.dispatcher.running', undef), 1, 'it runs');
    my $passes = metric('timer.passes', undef);
    $server->sql("select plan('one more', '0')");
    $server->delivered_ok('one more', 'a timer fires');
    $server->await_ok("select value > $passes from timers.metrics where name = 'timer.passes'", 'in a pass');
    is($server->sql("select count(distinct value) from timers.metrics
        where name in ('timer.passes', 'timer.pass.time.count')"), 1, 'each pass has its time');
    is($server->sql("select p.value <= w.value from timers.metrics p, timers.metrics w
        where p.name = 'timer.passes' and w.name = 'timer.wakeups'"), 't', 'and began with a wake-up');
    is($server->sql("select value between extract(epoch from pg_postmaster_start_time()) * 1000
        and extract(epoch from clock_timestamp()) * 1000 from timers.metrics where name = 'timer.counted.since'"),
        't', 'since the server started');
    $server->await_ok("select value between 0 and 60000 from timers.metrics
        where name = 'timer.safe_mark.age' and process_manager = 'orders'", 'marks are stored');
};

subtest 'prepared transactions' => sub {
    $server->sql("select timers.pause('prepared');
        begin; select plan('prepared', '0', 'prepared'); select timers.cancel(id('prepared'));
        prepare transaction 'p'");
    counted_ok('prepared', 'timer.cancelled 1', 'counted when prepared');
    $server->sql("commit prepared 'p'");
    counted_ok('prepared', 'timer.cancelled 1', 'and not again');
};

subtest 'many at a time' => sub {
    my $database = $server->new_database('busy');
    $server->sql("select timers.configure('lane 1', delivery => 'external');
        select timers.configure('lane 2', max_attempts => 1)", $database);
    # Random operations; a third of the transactions is rolled back, another third has a savepoint that is.
    my $script = q{
        \set id random(1, 100)
        \set lane random(0, 3)
        \set what random(1, 7)
        \set end random(1, 3)
        begin;
        select plan('t' || :id || '.' || :lane, '0', 'lane ' || :lane);
        \if :end = 2
            savepoint s;
        \endif
        \if :what = 1
            select timers.cancel(id('t' || :id || '.' || :lane));
        \elif :what = 2
            select timers.dead_letter(id('t' || :id || '.' || :lane), 'x');
        \elif :what = 3
            select timers.retry_dead(id('t' || :id || '.' || :lane));
        \elif :what = 4
            select timers.requeue(timer_id) from timers.claim_due('lane 1');
        \elif :what = 5
            select timers.mark_fired(timer_id, timer_id, claim_token) from timers.claim_due('lane 1', 3);
        \elif :what = 6
            select timers.fire_due(max_timers => 2);
        \else
            select count(*) from timers.claim_due('lane 1', 1, '1 ms');
        \endif
        \if :end = 2
            rollback to s;
        \endif
        \if :end = 3
            rollback;
        \else
            commit;
        \endif
    };
    my $file = $server->basedir . '/busy.pgbench';
    append_to_file($file, $script);
    command_ok([ qw(pgbench -n -c 4 -t 150 --max-tries 100 -f), $file, $server->connstr($database) ], 'it runs');
    # Until nothing changes any more.
    $server->wait_until("select count(*) from timers.timer t left join timers.claim c using (timer_id)
        where c is not null or (t.status = 'scheduled' and process_manager <> 'lane 1')", database => $database,
        expected => '0');
    is($server->sql("
        with told as (
            select process_manager, name, sum(value) as value from timers.metrics where process_manager is not null
              and labels is null group by process_manager, name)
        select t.process_manager, t.name, t.value, r.value
        from told t join (
            select process_manager, n.name, n.value
            from (select process_manager, count(*) filter (where status = 'fired') as fired, sum(attempts) as attempts,
                         count(*) filter (where status = 'cancelled') as cancelled
                  from timers.timer group by process_manager) s,
            lateral (values ('timer.fired', s.fired), ('timer.cancelled', s.cancelled),
                            ('timer.attempts.count', s.attempts)) n (name, value)) r using (process_manager, name)
        where t.value <> r.value", $database), '', 'the counters are as the rows say');
    is($server->sql("
        select count(*) from (
            select process_manager, sum(case name when 'timer.dead_lettered' then value else -value end)
            from timers.metrics where name in ('timer.dead_lettered', 'timer.retried') group by 1) m (lane, dead)
        where dead <> (select count(*) from timers.timer where process_manager = lane and status = 'dead')", $database),
        '0', 'those of the dead, too');
    is($server->sql("select sum(value) from timers.metrics
        where name = 'timer.delivered' and labels ->> 'delivery' = 'outbox'", $database),
        $server->sql('select count(*) from timers.outbox', $database), 'and those of the events');
};

subtest 'for Prometheus' => sub {
    my $database = $server->new_database('exposed');
    my @names = ('plain', 'q"uote', 'back\\slash', "new\nline", "\\n\t{a=\"b\",} 1", "\x{e9}\x{20ac}");
    utf8::encode($_) for @names;
    for my $name (@names) {
        (my $literal = $name) =~ s/'/''/g;
        $server->sql("set client_encoding = 'UTF8'; select plan('t', '1 day', '$literal');
            select plan(md5('$literal'), '0', '$literal')", $database);
    }
    $server->wait_until('select count(*) from timers.outbox', database => $database, expected => scalar @names);
    $server->wait_until("select sum(value) from timers.metrics where name = 'timer.fired'", database => $database,
        expected => scalar @names);
    # Its age is no metric of a process manager that has none yet.
    $server->wait_until('select count(*) from timers.safe_mark', database => $database, expected => scalar @names);
    my $text = $server->sql("set client_encoding = 'UTF8'; select timers.prometheus()", $database);
    # safe_psql takes the last newline off.
    is($server->sql("select timers.prometheus() ~ E'[^\\n]\\n\$'", $database), 't', 'it ends with one newline');
    is($server->sql("select strpos(timers.prometheus(), E'\\r')", $database), '0', 'and has no other line ends');
    my ($json, $error);
    my @parser = ('/usr/bin/python3', "$FindBin::RealBin/lib/parse_metrics.py");
    ok(run(\@parser, '<', \"$text\n", '>', \$json, '2>', \$error), 'the parser takes it') or diag($error);
    my @families = @{ decode_json($json) };
    my %family = map { $_->{name} => $_ } @families;
    is(scalar keys %family, scalar @families, 'each metric has one family');
    my @unexplained = grep { $_->{type} !~ /^(counter|gauge|histogram)$/ || $_->{help} eq '' } @families;
    is_deeply([ map { $_->{name} } @unexplained ], [], 'with a type and a help');
    my %seen;
    for my $family (@families) {
        $seen{ $_->{labels}{process_manager} // next }{ $family->{name} } = 1 for @{ $family->{samples} };
    }
    utf8::decode($_) for @names;
    is_deeply([ sort keys %seen ], [ sort @names ], 'the names of process managers come back as they are');
    is_deeply([ grep { keys %{ $seen{$_} } != keys %{ $seen{plain} } } @names ], [], 'each has the same metrics');

    my @value = map { $_->{value} } @{ $family{durable_timers_fired}{samples} };
    is_deeply(\@value, [ (1) x @names ], 'and the right values');
    for my $histogram (grep { $_->{type} eq 'histogram' } @families) {
        my %of;
        for (@{ $histogram->{samples} }) {
            push @{ $of{ $_->{labels}{process_manager} // '' }{ $_->{name} =~ s/.*_//r } }, $_;
        }
        for my $lane (sort keys %of) {
            my @bucket = @{ $of{$lane}{bucket} };
            my @count = map { $_->{value} } @bucket;
            my @edge = map { $_->{labels}{le} } @bucket;
            is(pop @edge, '+Inf', "$histogram->{name}: the last bucket has no edge");
            is_deeply([ @edge, @count ], [ (sort { $a <=> $b } @edge), (sort { $a <=> $b } @count) ],
                'edges and counts ascend');
            is($count[-1], $of{$lane}{count}[0]{value}, 'up to the count');
            is(scalar @{ $of{$lane}{sum} }, 1, 'there is a sum');
        }
    }
    # The view says the same: in other units, and under other names.
    is($server->sql("select count(*) from timers.metrics", $database),
        scalar(map { @{ $_->{samples} } } @families), 'as many as in the view');
    my ($sum) = grep { $_->{name} =~ /_sum$/ && $_->{labels}{process_manager} eq 'plain' }
        @{ $family{durable_timers_fire_lag_seconds}{samples} };
    is($server->sql("select value = $sum->{value}::numeric * 1000 from timers.metrics where name = 'timer.fire.lag.sum'
        and process_manager = 'plain'", $database), 't', 'in seconds here, in milliseconds there');
};

done_testing();

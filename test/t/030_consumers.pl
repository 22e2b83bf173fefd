# Consumers share the outbox, and none of it is lost or seen twice, however they or the server end; a publication feeds it
# to another server.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Document;
use IPC::Run;
use PostgreSQL::Test::Utils;
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', init => { allows_streaming => 'logical' });

# What consumers have done, written by themselves in the transactions in which they take the events.
$server->sql(q{
create table public.done (consumer integer not null, position bigint not null, event_id uuid not null,
                          process_manager text not null, name text not null);

create procedure public.consume(consumer integer, total bigint, lane text default null) language plpgsql as $$
begin
    loop
        insert into public.done
        select consumer, e.position, e.event_id, e.process_manager, e.correlation_id
        from timers.take_events(7, lane) e;
        commit;
        exit when (select count(*) from public.done d where d.process_manager = coalesce(lane, d.process_manager)) >= total;
        perform pg_sleep(0.001);
    end loop;
end $$;
});

# Consumers by number, each a psql that is started again until it has come to its end.
my %consumers;

sub start_consumer {
    my ($number, $arguments) = @_;
    my $connection = $server->connstr('postgres') . " application_name=consumer_$number";
    my $loop = 'until psql -XAtq -d "$1" -c "$2" 2>/dev/null; do sleep 0.02; done';
    $consumers{$number} = IPC::Run::start([ 'sh', '-c', $loop, 'sh', $connection, "call public.consume($number, $arguments)" ]);
    return;
}

END { $_->kill_kill for values %consumers }

# Ends one of them, as soon as there is one.
sub terminate_consumer {
    my $sessions = "from pg_stat_activity where application_name like 'consumer_%'";
    $server->wait_until("select count(*) > 0 $sessions");
    return $server->sql("select count(*) from (select pg_terminate_backend(pid) as done $sessions order by random() limit 1) t
        where done");
}

# Pages of tables and indexes that a consumer of a process manager looks at for an event, once its session knows how.
sub pages_looked_at {
    $server->sql("vacuum analyze timers.outbox; select plan('own ' || clock_timestamp(), '0', 'own')");
    $server->wait_until("select count(*) from timers.outbox where process_manager = 'own'", expected => '1');
    my $session = $server->session;
    $session->query_safe("select count(*) from timers.take_events(1, 'nobody')");
    my $plan = $session->query_safe("explain (analyze, buffers, costs off, timing off, summary off, format json)
        select * from timers.take_events(100, 'own')");
    $session->quit;
    my ($hit) = $plan =~ /"Shared Hit Blocks": (\d+)/;
    my ($read) = $plan =~ /"Shared Read Blocks": (\d+)/;
    return $hit + $read;
}

subtest 'consumers that are killed' => sub {
    # The last events come when nobody is killed any more: until then no consumer has come to its end.
    my ($total, $last) = (4000, 100);
    my $plan = "select count(plan('event ' || n, n % 2000 * interval '2 ms', 'lane ' || n % 3))";
    $server->sql("$plan from generate_series($last + 1, $total) n");
    start_consumer($_, $total) for 1 .. 6;
    my ($terminated, $crashes) = (0, 0);
    for my $round (1 .. 20) {
        my $target = $round * ($total - $last) / 20;
        $server->wait_until("select count(*) >= $target from public.done", seconds => 60);
        if ($round == 10) {
            $server->stop('immediate');
            $server->start;
            $crashes++;
        } else {
            $terminated += terminate_consumer();
        }
    }
    $server->sql("$plan from generate_series(1, $last) n");
    is($terminated, 19, 'consumers are terminated in the middle of it');
    is($crashes, 1, 'and all of them with the server, once');
    $server->await_ok('select count(*) from public.done', 'all events are consumed', expected => $total, seconds => 60);
    $_->finish for values %consumers;
    is($server->sql('select count(distinct event_id), count(distinct position), count(distinct name) from public.done'),
        "$total|$total|$total", 'each once');
    is($server->sql('select count(*) from timers.outbox'), '0', 'and none is left');
    cmp_ok($server->sql('select count(distinct consumer) from public.done'), '>', 1, 'by several consumers');
};

subtest 'consumers of one process manager' => sub {
    my $waiting = 3000;
    $server->sql("truncate public.done; select count(plan('other ' || n, '0', 'other')) from generate_series(1, $waiting) n;
        select count(plan('own ' || n, '0', 'own')) from generate_series(1, 200) n");
    $server->wait_until('select count(*) from timers.outbox', expected => $waiting + 200);
    %consumers = ();
    start_consumer($_, "200, 'own'") for 1 .. 3;
    $_->finish for values %consumers;
    is($server->sql('select process_manager, count(distinct name), count(*) from public.done group by 1'), 'own|200|200',
        'take its events alone, each once');
    is($server->sql('select count(*) from timers.outbox'), $waiting, 'and leave the others');

    # Ten times as much of the others.
    my $before = pages_looked_at();
    my $size = 'select pg_relation_size(\'timers.outbox\') / 8192';
    my $pages = $server->sql($size);
    $server->sql("select count(plan('more ' || n, '0', 'other')) from generate_series(1, 9 * $waiting) n");
    $server->wait_until("select count(*) from timers.outbox", expected => 10 * $waiting, seconds => 60);
    cmp_ok($server->sql($size), '>', 5 * $pages, 'which may be many');
    cmp_ok(pages_looked_at(), '<', $before + 20, 'and are not scanned for that');
    $server->sql('truncate timers.outbox');
};

subtest 'logical decoding' => sub {
    $server->sql("select pg_create_logical_replication_slot('changes', 'test_decoding')");
    $server->sql("select plan('decoded ' || n, '0') from generate_series(1, 3) n; select plan('rolled back', '-1 s');
        select timers.cancel(id('rolled back'))");
    $server->wait_until("select count(*) from timers.outbox where correlation_id like 'decoded %'", expected => '3');
    $server->sql('begin; select plan(\'undone\', \'0\'), timers.fire_due(); rollback');
    my $rows = $server->sql("select data from pg_logical_slot_get_changes('changes', null, null)
        where data like 'table timers.outbox: INSERT%'");
    my @names = $rows =~ /correlation_id\[text\]:'([^']*)'/g;
    is(join(', ', sort grep { /decoded/ } @names), 'decoded 1, decoded 2, decoded 3', 'shows each event once');
    is(scalar(grep { /undone/ } @names), 0, 'and none that was rolled back');
    my ($event_id) = $rows =~ /event_id\[uuid\]:'([-0-9a-f]{36})'/;
    is($server->sql("select count(*) from timers.timer where fired_event_id = '$event_id'"), '1',
        'under the id that its timer keeps');
    $server->sql("select pg_drop_replication_slot('changes')");
};

subtest 'a publication' => sub {
    # A server without the extension: the table's columns are all that it needs.
    my $subscriber = PostgreSQL::Test::Cluster->new('subscriber');
    $subscriber->init;
    $subscriber->start;
    $subscriber->safe_psql('postgres', q{create schema timers; create table timers.outbox (position bigint primary key,
        event_id uuid, timer_id uuid, process_manager text, correlation_id text, fire_at timestamptz, fired_at timestamptz,
        attempts integer, payload jsonb)});
    my ($publication) = sql_blocks(section(document('docs/operations.md'), '## Events in another system'));
    $server->sql("delete from timers.outbox; $publication");
    my $connection = $server->connstr('postgres') =~ s/'/''/gr;
    $subscriber->safe_psql('postgres', "create subscription timer_events connection '$connection' publication timer_events");
    $server->wait_until("select count(*) from pg_stat_replication where application_name = 'timer_events'
        and state = 'streaming'", expected => '1');

    my $schedule = sub {
        my ($from, $to) = @_;
        $server->sql("select plan('published ' || n, '0', 'reminders'), plan('private ' || n, '0', 'private')
            from generate_series($from, $to) n");
        $server->wait_until("select count(*) from timers.timer where process_manager = 'reminders' and status = 'fired'",
            expected => $to);
        return;
    };
    $schedule->(1, 10);
    # Consumers here are not the subscriber's business.
    $server->sql('select count(*) from timers.take_events(5)');
    $subscriber->stop;
    $schedule->(11, 20);
    $server->stop('immediate');
    $server->start;
    $subscriber->start;
    $schedule->(21, 30);
    my $deadline = time() + $TimerServer::patience;
    my $arrived = "select count(*), count(distinct event_id), count(*) filter (where process_manager = 'reminders'),
        bool_and(correlation_id like 'published %') from timers.outbox";
    select undef, undef, undef, 0.05
        while $subscriber->safe_psql('postgres', $arrived) !~ /^30/ && time() < $deadline;
    is($subscriber->safe_psql('postgres', $arrived), '30|30|30|t', 'carries the events of its process managers, each once');
    my $ids = "select string_agg(event_id::text, ' ' order by event_id)";
    is($subscriber->safe_psql('postgres', "$ids from timers.outbox"),
        $server->sql("select string_agg(fired_event_id::text, ' ' order by fired_event_id) from timers.timer
            where process_manager = 'reminders'"), 'under the ids that their timers keep');
    $subscriber->safe_psql('postgres', 'drop subscription timer_events');
    $subscriber->stop;
};

done_testing();

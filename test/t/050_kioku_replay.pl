# The example application flushes exactly what its log predicts, whatever order and however often the events come.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use KiokuServer;
use Test::More;

my $seed = seed_random();
my $server = KiokuServer->start_new('kioku');
my $ten_years;

subtest 'ten years of activity' => sub {
    my $database = $server->new_database('in_order');
    my $out = $server->replay_ok('in order', $database, activity());
    my $flushed = $server->flushed($database);
    is_deeply($flushed, expected(activity()), 'every id and instant is as another language says');
    is($server->sql('select kind, count(*) from kioku.flush group by kind order by kind', $database),
        "final|3709\nidle|3709\nramp|4895", 'as many as are known of this log');
    is($server->sql('select (select count(*) from kioku.session where completed_at is not null),
        (select count(*) from kioku.turn)', $database), '3709|5451', '3,709 sessions of 5,451 turns, all completed');
    is($server->sql(q{
        select count(*) from kioku.flush f
        where kind = 'idle' and exists (
            select from kioku.turn t where t.session_id = f.session_id and t.recorded_at > f.due_at)}, $database),
        '758', '758 idle flushes before the last turn');
    # Of the turns after the first, those that came within 30 minutes of one another, from the start on.
    my $pushes = $server->sql(q{
        select count(*) from (
            select turn_index, bool_and(gap <= '30 minutes') over (partition by session_id order by turn_index) as near
            from (select *, recorded_at - lag(recorded_at) over (partition by session_id order by turn_index) as gap
                  from kioku.turn) t) t
        where turn_index > 1 and near}, $database);
    is_deeply(outcomes($out), { inserted => 3709, rearmed => $pushes, too_late => 5451 - 3709 - $pushes },
        'each turn pushes the timer, or is too late for a timer that has fired');
    is($server->sql('select status, count(*) from timers.timer group by status', $database), 'fired|' . @$flushed,
        'there are no other timers');
    is($server->sql('select count(*) from timers.outbox', $database), '0', 'nor events');
    is($server->sql(q{
        select bool_and(due_at = latest) from (
            select due_at, max(due_at) over (order by ctid) as latest from kioku.flush) f}, $database),
        't', 'the flushes came in the order of time');

    $ten_years = $server->state_of($database);
    my $clocks = 'select max(flushed_at), (select max(updated_at) from timers.timer) from kioku.flush';
    my $before = $server->sql($clocks, $database);
    is_deeply(outcomes($server->replay_ok('again', $database, activity())), { kept => 5451 }, 'no turn is new then');
    is($server->state_of($database), $ten_years, 'nothing has changed');
    is($server->sql($clocks, $database), $before, 'no timer was touched');
};

subtest 'every event three times, late and out of order' => sub {
    my %lateness = (within_days => '3 days', in_any_order => '100 years');
    for my $database (sort keys %lateness) {
        $server->new_database($database);
        my $out = $server->replay_ok("up to $lateness{$database} late", $database, activity(),
            deliveries => 3, lateness => $lateness{$database}, seed => $seed);
        is(outcomes($out)->{inserted}, 3709, 'every session has one idle timer');
        cmp_ok(outcomes($out)->{kept}, '>', 2 * 5451, 'what comes again is known, and some turns are late');
        is($server->state_of($database), $ten_years, 'it comes to the same');
    }
};

subtest 'another log' => sub {
    my $log = random_log(300);
    my $expected = expected($log);
    my %late = (deliveries => 4, lateness => '2 hours', seed => $seed);
    for my $replay ([ 'other' ], [ 'other_late', %late ], [ 'other_kept', retention => '7 days' ]) {
        my ($database, %variables) = @$replay;
        $server->new_database($database);
        $server->replay_ok($database, $database, $log, %variables);
        is_deeply($server->flushed($database), $expected, 'every id and instant is as another language says');
    }
    is($server->state_of('other_late'), $server->state_of('other'), 'late or not comes to the same');
    cmp_ok($server->sql('select count(*) from timers.timer', 'other_kept'), '<', @$expected / 2, 'timers are deleted');
    is($server->sql('select count(*) from timers.timer', 'other'), scalar @$expected, '... only if asked');
    $server->replay_ok('again, after that', 'other_kept', $log, retention => '7 days');
    is_deeply($server->flushed('other_kept'), $expected, 'what was deleted does not come back');
};

subtest 'a backlog that is imported' => sub {
    my $database = $server->new_database('imported');
    my $log = random_log(100);
    my ($done, undef, $error) = $server->run_psql($database, $log, map { ('-c', $_) }
        q{set timezone = 'UTC'},
        q{create table log (number integer generated always as identity, session text, at timestamptz)},
        q{\copy log (session, at) from pstdin with (format csv, header, encoding 'UTF8')},
        q{select timers.pause('kioku-l1-extract')},
        q{do $$
          declare
              turn record;
          begin
              for turn in select *, row_number() over (partition by session order by at, number) as turn_index from log
                          order by turn_index loop
                  perform kioku.record_turn(turn.session, turn.turn_index::integer, turn.at);
                  commit;
              end loop;
              perform kioku.complete_session(session, date_trunc('day', min(at)) + interval '1 day')
              from log group by session;
          end $$},
        q{select timers.unpause('kioku-l1-extract')});
    ok($done, 'it is recorded while the process manager is paused') or diag($error);
    my $expected = expected($log, 0);
    $server->await_ok('select count(*) from timers.outbox', 'then the workers fire', database => $database,
        expected => scalar @$expected);
    $server->sql('select count(*) from kioku.flush_due(1000000)', $database);
    is_deeply($server->flushed($database), $expected, 'what would have been flushed in time');
};

done_testing();

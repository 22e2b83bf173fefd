# The example application by hand, as its README.md shows it; what it does with events that come again; and that a
# replay fails when it should.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Document;
use KiokuServer;
use Test::More;
use Time::HiRes qw(sleep time);

my $server = KiokuServer->start_new('kioku');

subtest 'the five minutes of README.md, with the workers' => sub {
    my $database = $server->new_database('by_hand');
    my ($record, $flush, $late) = sql_blocks(document('examples/kioku/README.md'));
    my $session = $server->session($database);
    my $rings = 0;
    my $run = sub {
        my $said = $session->query_safe($_[0]);
        $rings += $said =~ s/^Asynchronous notification "kioku_l1_extract" received.*\n?//mg;
        return $said =~ s/\n$//r;
    };
    # Takes what has fired until so many flushes are there: their kinds, turn counts and memory spaces.
    my $await_flushes = sub {
        my ($count, @flushes) = @_;
        my $deadline = time() + $TimerServer::patience;
        while (@flushes < $count && time() < $deadline) {
            push @flushes, map { s/(\|[^|]*){2}$//r } split /\n/, $run->($flush);
            sleep(0.05);
        }
        return "@flushes";
    };
    is($run->($record), join("\n", $record =~ /-- (\w+):/g), 'the turns do what the comments say');
    is($await_flushes->(3), 'ramp|1|personal ramp|2|personal idle|2|personal', 'the session is flushed');
    my ($too_late, $true, @timers) = split /\n/, $run->($late);
    is("$too_late $true", 'too_late t', 'another turn is too late, and the session ends');
    is_deeply([ map { /"kind": "(\w+)"/ } @timers ], [qw(ramp ramp idle final)], 'these are its timers');
    is($await_flushes->(1), 'final||personal', 'the session is flushed for the last time');
    ok($rings > 0, 'the bell has rung');
    $session->quit;
    is($server->sql(q{
        select f.kind, f.due_at = case f.kind when 'idle' then t.recorded_at + interval '3 seconds'
                                              when 'ramp' then t.recorded_at else s.completed_at end,
               f.fired_at >= f.due_at
        from kioku.flush f join kioku.session s using (session_id)
        left join kioku.turn t on t.session_id = f.session_id and t.turn_index = f.turn_count
        order by f.due_at}, $database), join("\n", map { "$_|t|t" } qw(ramp ramp idle final)), 'each at its time');
};

subtest 'what an event meets' => sub {
    my $database = $server->new_database('met');
    is($server->sql(q{
        do $$ begin
            perform kioku.record_turn('a', 1, now(), 'family'), kioku.record_turn('a', 2, now(), 'work');
            -- As the first version of the application scheduled it.
            perform timers.schedule(kioku.timer_id('a', 'ramp:4'), 'kioku-l1-extract', 'a', now(),
                                    '{"kind": "ramp", "turnCount": 4}');
            perform timers.fire_due();
        end $$;
        select turn_count, memory_space from kioku.flush_due() order by turn_count}, $database),
        "1|family\n2|family\n4|legacy", 'a session stays in its memory space; an older timer has the default');
    is($server->sql(q{
        select kioku.complete_session('a', now());
        select kioku.complete_session('a', now() + interval '1 hour');
        select kioku.record_turn('a', 2, now())}, $database), "t\nf\nkept", 'what comes again changes nothing');
    like($server->sql_error(q{select kioku.record_turn('a', 3, now())}, $database),
        qr/^55000 session "a" is completed/, 'a new turn of a completed session is refused');
    like($server->sql_error(q{select kioku.complete_session('b', now())}, $database),
        qr/^P0002 there is no session "b"/, 'so is the end of an unknown one');

    # Two consumers of a queue are given the same turn.
    my $turn = q{select kioku.record_turn('twice', 1, '2100-01-01 00:00Z')};
    my @sessions = map { $server->session($database) } 1, 2;
    is($sessions[0]->query_safe("begin; $turn"), 'inserted', 'a turn is being recorded');
    $sessions[1]->query_until(qr/asked/, "\\echo asked\n$turn;\n");
    $server->wait_until(q{select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'twice'},
        database => $database, expected => '1');
    $sessions[0]->query_safe('commit');
    like($sessions[1]->query_safe('select 1'), qr/^kept$/m, 'whoever else records it waits, and finds it known');
    $_->quit for @sessions;
};

# Makes every turn schedule another timer.
sub more_timers {
    my ($delay) = @_;
    return qq{
        create function kioku.more() returns trigger language plpgsql as \$\$
        begin
            perform timers.schedule_once(kioku.timer_id(new.session_id, 'more'), 'kioku-l1-extract', new.session_id,
                new.recorded_at + interval '$delay', kioku.timer_payload('idle', 1, 'personal'));
            return null;
        end \$\$;
        create trigger more after insert on kioku.turn for each row execute function kioku.more()};
}

subtest 'a replay sees what is wrong' => sub {
    my $log = new_log("session,at\na,2020-01-01T10:00:00Z\na,2020-01-01T10:29:30Z\nb,2020-01-02T10:00:00Z\n");
    my %wrong = (
        impatient => q{alter database impatient set kioku.idle_time = '29 minutes'},
        forgetful => q{create or replace function kioku.is_ramp_turn(turn_index integer) returns boolean
                       return turn_index = 1},
        hasty => more_timers('0'),
        slow => more_timers('1 year'));
    my %seen = (
        impatient => qr/^missing\|a\|idle\|2\|.*the flushes are not those that the log predicts/ms,
        forgetful => qr/^missing\|a\|ramp\|2\|.*the flushes are not those that the log predicts/ms,
        hasty => qr/^unexpected\|b\|idle\|1\|.*the flushes are not those that the log predicts/ms,
        slow => qr/there are timers that have not fired/);
    for my $database (sort keys %wrong) {
        $server->new_database($database);
        $server->sql($wrong{$database}, $database);
        my ($done, $out, $error) = $server->replay($database, $log);
        ok(!$done, "$database: the replay fails");
        like("$out$error", $seen{$database}, 'and shows why');
    }
};

subtest 'what is no log is refused' => sub {
    my $database = $server->new_database('refused');
    my $good = "session,at\na,2020-01-02T00:00:00Z\n";
    my $long = 'a' x 1025;
    my @refused = (
        [ '', qr/wrong number of fields in header line/ ],
        [ "session,at\n", qr/it has no turns/ ],
        [ "session,moment\na,2020-01-02T00:00:00Z\n", qr/header line field 2: got "moment", expected "at"/ ],
        [ "session,at,kind\na,2020-01-02T00:00:00Z,x\n", qr/wrong number of fields in header line/ ],
        [ "${good}a\n", qr/missing data for column "at"/ ],
        [ "$good,2020-01-02T00:00:00Z\n", qr/line 3: the session is empty/ ],
        [ "$good$long,2020-01-02T00:00:00Z\n", qr/line 3: the session is longer than 1024 bytes/ ],
        [ "${good}a,\n", qr/line 3: "" is not an instant/ ],
        [ "${good}a,2020-01-02T00:00:00\n", qr/line 3: "2020-01-02T00:00:00" is not an instant such as / ],
        [ "${good}a,2020-02-30T00:00:00Z\n", qr/line 3: "2020-02-30T00:00:00Z" is not an instant/ ],
        [ "${good}a,infinity\n", qr/line 3: "infinity" is not an instant/ ],
        [ "${good}b,1500-01-01T00:00:00Z\n", qr/line 3: "1500-01-01T00:00:00Z" is too long ago/ ],
        [ "${good}a,2020-01-02T00:30:00+01:00\n", qr/line 2: session "a" began on 2020-01-01, UTC/ ]);
    for (@refused) {
        my ($log, $why) = @$_;
        my ($done, undef, $error) = $server->replay($database, new_log($log));
        ok(!$done, 'refused');
        like($error, $why, '... for a reason');
    }
    $server->sql("select timers.schedule_in(gen_random_uuid(), 'orders', 'order', '1 day')", $database);
    my ($done, undef, $error) = $server->replay($database, activity());
    ok(!$done, 'timers of others are not fired');
    like($error, qr/ERROR:  this database has timers of other process managers/, '... for a reason');
    is($server->sql('select (select count(*) from kioku.session), (select count(*) from timers.timer)', $database),
        '0|1', 'nothing was replayed');
};

done_testing();

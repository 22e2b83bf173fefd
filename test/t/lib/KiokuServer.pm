# A server for databases with the example application of examples/kioku, and what its tests share: replays of logs, what
# was flushed, and what should have been.
package KiokuServer;

use strict;
use warnings;

use Exporter qw(import);
use File::Basename qw(dirname);
use IPC::Run;
use PostgreSQL::Test::Utils qw(append_to_file);
use TimerServer;
use Test::More;

our @ISA = ('TimerServer', 'Exporter');
our @EXPORT = qw(activity expected new_log outcomes random_log seed_random);

my $folder = dirname(__FILE__);
my $example = "$folder/../../../examples/kioku";

sub activity { return "$example/activity.csv" }

# Makes the test's random numbers repeatable. Returns the seed.
sub seed_random {
    my $seed = $ENV{SEED} // int(rand(1_000_000_000));
    diag("seed $seed; run with SEED=$seed to see a failure again");
    srand($seed);
    return $seed;
}

# Runs psql with a file on standard input: whether it succeeded, its output and its messages.
sub run_psql {
    my ($server, $database, $input, @options) = @_;
    my ($out, $error);
    my @command = ($server->installed_command('psql'), '-XAt', '-v', 'ON_ERROR_STOP=1');
    my $done = IPC::Run::run([ @command, '-d', $server->connstr($database), @options ],
        '<', $input, '>', \$out, '2>', \$error);
    return ($done, $out, $error);
}

# A database with the example, made as README.md says.
sub new_database {
    my ($server, $database) = @_;
    $server->sql("create database $database");
    my ($done, undef, $error) = $server->run_psql($database, '/dev/null', '-1', '-c', 'create extension durable_timers',
        '-f', "$example/kioku.sql");
    $done or die "could not install the example: $error";
    return $database;
}

sub replay {
    my ($server, $database, $log, %variables) = @_;
    my @options = map { ('-v', "$_=$variables{$_}") } sort keys %variables;
    return $server->run_psql($database, $log, @options, '-f', "$example/replay.sql");
}

# The same as a test, named for how the log is replayed. Returns the output.
sub replay_ok {
    my ($server, $how, @replay) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my ($done, $out, $error) = $server->replay(@replay);
    ok($done, "$how: the replay agrees with its prediction") or diag($out, $error);
    return $out;
}

# Turns by what record_turn() returned, as a replay reports them.
sub outcomes { return { $_[0] =~ /^(inserted|rearmed|kept|too_late)\|(\d+)$/mg } }

# What was flushed, as kioku_expected.py writes it.
sub flushed {
    my ($server, $database) = @_;
    return sorted_lines($server->sql(q{
        set timezone = 'UTC';
        select concat_ws('|', timer_id, event_id, session_id, kind, coalesce(turn_count::text, ''),
                         to_char(due_at, 'YYYY-MM-DD HH24:MI:SS.US'))
        from kioku.flush}, $database));
}

# What is to be flushed for a log, by another language. A replay moves the log 400 years ahead.
sub expected {
    my ($log, $years_ahead) = @_;
    my ($out, $error);
    IPC::Run::run([ 'python3', "$folder/kioku_expected.py", $years_ahead // 400 ], '<', $log, '>', \$out, '2>', \$error)
        or die "kioku_expected.py failed: $error";
    return sorted_lines($out);
}

sub sorted_lines { return [ sort split /\n/, $_[0] ] }

# All that the application, its timers and its events are, less what the server's clock and the engine's looks left.
sub state_of {
    my ($server, $database) = @_;
    return $server->sql(q{
        set timezone = 'UTC';
        select md5(string_agg(line, E'\n' order by line collate "C")) from (
            select to_jsonb(s)::text from kioku.session s
            union all select to_jsonb(t)::text from kioku.turn t
            union all select (to_jsonb(f) - '{fired_at,flushed_at}'::text[])::text from kioku.flush f
            union all select (to_jsonb(t) - '{wake_at,created_at,updated_at}'::text[])::text from timers.timer t
            union all select to_jsonb(o)::text from timers.outbox o) state (line)}, $database);
}

# A file with a log.
sub new_log {
    my ($text) = @_;
    my $path = PostgreSQL::Test::Utils::tempdir('log') . '/log.csv';
    append_to_file($path, $text);
    return $path;
}

# A log of sessions of many kinds, in no order: gaps around the idle time, turns at the same moment, many turns, some
# just before midnight, names of all sorts.
sub random_log {
    my ($sessions) = @_;
    my @gaps = (0, 0.000001, 1, 60, 600, 1799, 1799.999999, 1800, 1800.000001, 1801, 7200);
    my @lines;
    for my $session (1 .. $sessions) {
        my @names = ("plain $session", "\"comma, $session\"", "\"a \"\"quote\"\" $session\"", "Grüße:$session");
        my $name = $names[ rand @names ];
        my $day = int(rand(20_000)) * 86_400;
        my $second = (0, 80_000 + int(rand(6_399)), 86_399, int(rand(86_400)))[ rand 4 ];
        for (my $turns = 1 + int(rand(1.2)**20); $turns > 0 && $second < 86_400; $turns--) {
            my ($whole, $fraction) = split /\./, sprintf('%.6f', $second);
            my ($s, $m, $h, $mday, $month, $year) = gmtime($day + $whole);
            push @lines, sprintf("%s,%04d-%02d-%02dT%02d:%02d:%02d.%s%s\n",
                $name, $year + 1900, $month + 1, $mday, $h, $m, $s, $fraction, ('Z', '+00:00')[ rand 2 ]);
            $second += $gaps[ rand @gaps ];
        }
    }
    my %place = map { $_ => rand } 0 .. $#lines;
    return new_log("session,at\n" . join '', @lines[ sort { $place{$a} <=> $place{$b} } keys %place ]);
}

1;

# A server with the extension, and the words that the tests of this folder share.
package TimerServer;

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(sleep time);

our @ISA = ('PostgreSQL::Test::Cluster');

# A session's protocol of every query buries the test's own lines.
{
    no warnings 'redefine';
    *PostgreSQL::Test::BackgroundPsql::note = sub { };
}

# No test waits longer for what has to happen. Less than the dispatcher's longest sleep (a minute), so that a wake-up
# that is lost is not made good by that.
our $patience = 30;

# Short names for what tests do all the time. A timer is known by its correlation id, from which its own id derives.
my $words = q{
create function public.id(name text) returns uuid language sql immutable as
$$ select timers.timer_id('6ba7b810-9dad-11d1-80b4-00c04fd430c8', name) $$;

create function public.plan(name text, delay interval, lane text default 'orders') returns text language sql as
$$ select timers.schedule_in(public.id(name), lane, name, delay)::text $$;

create function public.times_delivered(name text) returns bigint language sql as
$$ select count(*) from timers.outbox where correlation_id = name $$;

create function public.status(name text) returns text language sql as
$$ select status::text from timers.timer where timer_id = public.id(name) $$;
};

# Makes a server and starts it. Options: preload (1), conf, init (as Cluster::init takes them), extension (1: in the
# database postgres).
sub start_new {
    my ($class, $name, %with) = @_;
    my $server = $class->new($name);
    $server->init(%{ $with{init} || {} });
    my @conf = ("timezone = 'UTC'", 'log_statement = none', 'max_worker_processes = 24');
    push @conf, "shared_preload_libraries = 'durable_timers'" if $with{preload} // 1;
    $server->append_conf('postgresql.conf', join("\n", @conf, $with{conf} // ''));
    $server->start;
    $server->add_extension('postgres') if $with{extension} // 1;
    return $server;
}

sub add_extension {
    my ($server, $database) = @_;
    $server->sql("create extension durable_timers; $words", $database);
    return;
}

# A database of its own for a test: its dispatcher has nothing behind it that could wake it by chance.
sub new_database {
    my ($server, $database) = @_;
    $server->sql("create database $database");
    $server->add_extension($database);
    $server->wait_for_sleep($database);
    return $database;
}

sub sql {
    my ($server, $query, $database) = @_;
    return $server->safe_psql($database // 'postgres', $query);
}

# Runs a query that must fail; returns its SQLSTATE and its message.
sub sql_error {
    my ($server, $query, $database) = @_;
    my ($status, $out, $error) = $server->psql($database // 'postgres', "\\set VERBOSITY verbose\n$query");
    return $error =~ /ERROR:  ([0-9A-Z]{5}): (.*)/ ? "$1 $2" : "no error: $out $error";
}

# A session that stays open. A failing query does not end it.
sub session {
    my ($server, $database) = @_;
    return $server->background_psql($database // 'postgres', on_error_stop => 0);
}

# Whether the query answers with $expected within the time. Errors are answers, too: the server may be down just now.
sub eventually {
    my ($server, $query, %with) = @_;
    my $expected = $with{expected} // 't';
    my $deadline = time() + ($with{seconds} // $patience);
    for (my $pause = 0.02;; $pause *= 1.2) {
        my ($status, $out, $error) = $server->psql($with{database} // 'postgres', $query);
        return 1 if $out eq $expected && $error eq '';
        if (time() > $deadline) {
            diag("gave up waiting for: $query\nexpected: $expected\nlast answer: $out\n$error");
            return 0;
        }
        sleep($pause < 0.2 ? $pause : 0.2);
    }
}

# The same as a test.
sub await_ok {
    my ($server, $query, $name, %with) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok($server->eventually($query, %with), $name);
}

# The same as a precondition.
sub wait_until {
    my ($server, $query, %with) = @_;
    $server->eventually($query, %with) or die "a precondition did not come about: $query";
    return;
}

# A timer that plan() named is in the outbox, once.
sub delivered_ok {
    my ($server, $timer, $name, %with) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $server->await_ok("select times_delivered('$timer')", $name, %with, expected => '1');
}

# The names of all that is in the outbox, in order of their names.
sub delivered {
    my ($server, $database) = @_;
    return $server->sql("select coalesce(string_agg(correlation_id, ' ' order by correlation_id collate \"C\"), '')
        from timers.outbox", $database);
}

# The pids of workers as the server itself knows them: 'dispatcher' of a database, or 'launcher'.
sub worker_pid {
    my ($server, $worker, $database) = @_;
    return $server->sql(worker_pid_query($worker, $database));
}

sub worker_pid_query {
    my ($worker, $database) = @_;
    my $query = "select pid from pg_stat_activity where backend_type = 'durable_timers $worker'";
    $query .= " and datname = '" . ($database // 'postgres') . "'" if $worker eq 'dispatcher';
    return $query;
}

# Waits for a worker, other than one that is known already, and returns its pid.
sub wait_for_worker {
    my ($server, $worker, $database, $but_not) = @_;
    my $query = worker_pid_query($worker, $database) . ($but_not ? " and pid <> $but_not" : '');
    my $deadline = time() + $patience;
    for (;;) {
        my ($status, $out, $error) = $server->psql('postgres', $query);
        return $out if $out =~ /^\d+$/;
        die "gave up waiting for a $worker: $out $error" if time() > $deadline;
        sleep(0.05);
    }
}

# Waits until the dispatcher runs and sleeps, for longer than any test waits for a firing.
sub wait_for_sleep {
    my ($server, $database) = @_;
    $server->wait_until("
        select exists (
            select from timers.workers w join pg_stat_activity a using (pid)
            where a.wait_event_type = 'Extension'
              and coalesce(w.sleeps_until, 'infinity') > clock_timestamp() + interval '40 s')",
        database => $database, seconds => 60);
    return;
}

# Waits until the clock has passed an instant that the query names.
sub wait_for_clock {
    my ($server, $instant, $database) = @_;
    $server->wait_until("select clock_timestamp() > ($instant)", database => $database);
    return;
}

# Reads what a session with LISTEN is sent until as many notifications have come: [channel, payload] each.
sub notifications {
    my ($session, $count) = @_;
    my $text = '';
    my $deadline = time() + $patience;
    for (;;) {
        $text .= $session->query('select 1') . "\n";
        my @found;
        while ($text =~ /^Asynchronous notification "(.*?)"(?: with payload "(.*)")? received from server process/mg) {
            push @found, [ $1, $2 // '' ];
        }
        return @found if @found >= $count;
        die "gave up waiting for notifications: $text" if time() > $deadline;
        sleep(0.02);
    }
}

1;

# pg_stat_activity explains the workers: who they are, what they do, and what they wait for while they do nothing.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Document;
use HandlerServer;
use PostgreSQL::Test::Utils qw(slurp_file);
use Test::More;

my $server = HandlerServer->start_new('main');

# What a worker shows, once it does.
sub shows_ok {
    my ($worker, $state, $activity, $name, %with) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $where = $worker eq 'launcher' ? 'datname is null' : 'datname = current_database()';
    return $server->await_ok("select count(*) > 0 from pg_stat_activity
        where backend_type = 'durable_timers $worker' and application_name = backend_type and $where
          and state = '$state' and query = \$\$$activity\$\$
          and (state <> 'idle' or (wait_event_type = 'Extension' and wait_event is not null))", $name, %with);
}

# Makes what a statement does to a table take until the lock is free, and returns who holds it.
sub slow_down {
    my ($when, $table, $condition, $database) = @_;
    $server->sql("
        create or replace function public.wait() returns trigger language plpgsql as \$\$
        begin perform pg_advisory_xact_lock_shared(1); return coalesce(new, old); end \$\$;
        create trigger wait before $when on timers.$table for each row when ($condition)
        execute function public.wait()", $database);
    my $session = $server->session($database);
    $session->query_safe('select pg_advisory_lock(1)');
    return $session;
}

sub speed_up {
    my ($session, $table, $database) = @_;
    $session->quit;
    # Waits for whoever has been slowed down.
    $server->sql("drop trigger wait on timers.$table", $database);
    return;
}

subtest 'the launcher' => sub {
    shows_ok('launcher', 'idle', 'waiting for databases, workers and calls', 'waits');
};

subtest 'a dispatcher with nothing to do' => sub {
    my $database = $server->new_database('quiet');
    shows_ok('dispatcher', 'idle', 'waiting for timers', 'waits for timers', database => $database);
    $server->sql("select plan('far', '1 day')", $database);
    my $fire_at = $server->sql('select fire_at from timers.timer', $database);
    $server->await_ok("select timestamptz '$fire_at' = substring(query from '^sleeping until (.*)')::timestamptz
        from pg_stat_activity where backend_type = 'durable_timers dispatcher' and datname = current_database()",
        'and then for the next one', database => $database);
};

subtest 'a dispatcher at work' => sub {
    my $database = $server->new_database('busy');
    my $session = slow_down('insert', 'outbox', 'true', $database);
    $server->sql("select plan('due', '0')", $database);
    shows_ok('dispatcher', 'active', 'firing due timers', 'fires', database => $database);
    speed_up($session, 'outbox', $database);

    $server->sql("select timers.configure('work', delivery => 'external')", $database);
    $session = slow_down('update', 'timer', "old.status = 'firing' and new.status = 'scheduled'", $database);
    $server->sql("select plan('held', '0', 'work'); select count(*) from timers.claim_due('work', 1, '1 ms')",
        $database);
    shows_ok('dispatcher', 'active', 'ending leases that are over', 'ends leases', database => $database);
    speed_up($session, 'timer', $database);

    $session = slow_down('delete', 'timer', 'true', $database);
    $server->sql("select timers.configure('orders', retention => '0')", $database);
    shows_ok('dispatcher', 'active', 'deleting timers whose retention is over', 'deletes', database => $database);
    speed_up($session, 'timer', $database);

    $session = slow_down('insert or update', 'safe_mark', 'true', $database);
    $server->sql("select plan('marked', '0', 'another')", $database);
    shows_ok('dispatcher', 'active', 'storing safe marks', 'stores marks', database => $database);
    speed_up($session, 'safe_mark', $database);
    $server->await_ok("select count(*) from timers.safe_mark where process_manager = 'another'",
        'and has stored them in the end', database => $database, expected => '1');
};

subtest 'a dispatcher that may not fire' => sub {
    my $original = $server->new_database('original');
    $server->sql("select timers.pause('orders'), plan('due', '0')", $original);
    $server->sql("create database copied template $original");
    shows_ok('dispatcher', 'idle', 'waiting for timers.arm()', 'waits for that', database => 'copied');
};

subtest 'a handler worker' => sub {
    my $database = $server->new_database('handling');
    $server->add_handler('handled', 'perform pg_advisory_xact_lock_shared(1); return t.timer_id;',
        database => $database);
    my $session = slow_down('insert', 'claim', 'true', $database);
    $server->sql("select plan('first', '0', 'handled')", $database);
    shows_ok('handler', 'active', 'claiming a timer of process manager "handled"', 'claims', database => $database);
    speed_up($session, 'claim', $database);
    $server->await_ok("select status('first')", 'then handles', database => $database, expected => 'fired');
    shows_ok('handler', 'idle', 'waiting for timers with handlers', 'and waits', database => $database);

    $session = $server->session($database);
    $session->query_safe('select pg_advisory_lock(1)');
    $server->sql("select plan('second', '0', 'handled')", $database);
    shows_ok('handler', 'active', 'running handler public.handled of process manager "handled"', 'runs the handler',
        database => $database);
    $session->quit;
    $server->await_ok("select status('second')", 'to its end', database => $database, expected => 'fired');
};

subtest 'docs/operations.md has them all' => sub {
    my $text = document('docs/operations.md');
    my $root = "$FindBin::RealBin/../..";
    my $source = join '', map { slurp_file($_) } glob "$root/src/{workers,engine}/*.cpp";
    my @said = $source =~ /(?:in_transaction|show_activity|show_idle)\("(.*?)"/g;
    cmp_ok(scalar @said, '>=', 8, 'the source has some');
    ok(index($text, "`$_`") >= 0, "\"$_\" is in the document") for @said;
};

done_testing();

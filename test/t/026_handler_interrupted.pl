# A handler is in nobody's way who shuts the server down or needs its database; its attempt is given back.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use HandlerServer;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

my $server = HandlerServer->start_new('main', init => { allows_streaming => 1 });

# Sleeps for an hour, unless the table says that it is to end: then it completes.
my $sleeping = "call public.took_effect(t, 'slept'); if not exists (select from public.morning) then
    perform pg_sleep(3600); end if; return t.timer_id;";

sub add_sleeper {
    my ($database, %settings) = @_;
    $server->sql('create table morning (); grant select on morning to app', $database);
    $server->add_handler('sleeper', $sleeping, handler_timeout => '1 h', lease => '2 h', max_attempts => 2, %settings,
        database => $database);
    return;
}

# A database with a handler that sleeps.
sub sleeping_database {
    my ($database) = @_;
    $server->new_database($database);
    add_sleeper($database);
    $server->sql("select plan('sleeper', '0', 'sleeper')", $database);
    $server->sleeping_handler($database);
    return $database;
}

# In less time than the server itself gives a command that finds somebody connected.
sub quickly_ok {
    my ($command, $name, $database) = @_;
    my $start = time();
    my ($status, $out, $error) = $server->psql($database // 'postgres', "set statement_timeout = '20 s'; $command");
    is($error, '', $name);
    return cmp_ok(time() - $start, '<', 5, 'within five seconds');
}

# The timer is handled again by itself, as if it had never been tried.
sub resumes_ok {
    my ($database, $name) = @_;
    $server->await_ok("select fate('sleeper')", "$name: the timer is tried again", database => $database,
        expected => 'firing 1', seconds => 10);
    $server->sleeping_handler($database);
    $server->sql("insert into morning default values; select timers.requeue(id('sleeper'))", $database);
    $server->fate_ok('sleeper', 'fired 2', "$name: and again", database => $database);
    is($server->sql("select effects()", $database), 'sleeper 2 slept', 'with the effect of that attempt alone');
    return;
}

for my $mode ('fast', 'smart') {
    subtest "$mode shutdown" => sub {
        my $database = sleeping_database($mode);
        my $start = time();
        is($server->stop($mode, fail_ok => 1), 1, 'the server stops');
        cmp_ok(time() - $start, '<', 5, 'within five seconds');
        $server->start;
        resumes_ok($database, "after a $mode shutdown");
        is($server->sql('select count(*) from timers.claim', $database), '0', 'no claim is left');
    };
}

subtest 'an immediate shutdown' => sub {
    my $database = $server->new_database('immediate');
    add_sleeper($database, handler_timeout => '1 s', lease => '3 s');
    $server->sql("select plan('sleeper', '0', 'sleeper')", $database);
    $server->sleeping_handler($database);
    $server->stop('immediate');
    $server->start;
    is($server->sql("select fate('sleeper') || ' ' || count(*) from timers.claim", $database), 'firing 1 1',
        'the attempt stays counted, and the claim holds');
    $server->sql('insert into morning default values', $database);
    $server->fate_ok('sleeper', 'fired 2', 'until its lease ends', database => $database);
};

subtest 'a shutdown with a synchronous standby that is away' => sub {
    my $database = $server->new_database('synchronous');
    add_sleeper($database);
    $server->sql("select plan('sleeper', '0', 'sleeper')", $database);
    $server->sleeping_handler($database);
    $server->append_conf('postgresql.conf', "synchronous_standby_names = 'nowhere'");
    $server->reload;
    $server->wait_until("select setting = 'nowhere' from pg_settings where name = 'synchronous_standby_names'");
    my $start = time();
    is($server->stop('fast', fail_ok => 1), 1, 'the server stops');
    cmp_ok(time() - $start, '<', 5, 'within five seconds');
    $server->adjust_conf('postgresql.conf', 'synchronous_standby_names', undef);
    $server->start;
    resumes_ok($database, 'afterwards');
};

# The claim is committed here, and waits there: the handler has not begun.
subtest 'a shutdown between the claim and its handler' => sub {
    my $database = $server->new_database('claiming');
    add_sleeper($database);
    $server->sql('insert into morning default values', $database);
    $server->append_conf('postgresql.conf', "synchronous_standby_names = 'nowhere'");
    $server->reload;
    $server->wait_until("select setting = 'nowhere' from pg_settings where name = 'synchronous_standby_names'");
    $server->sql("set synchronous_commit = local; select plan('sleeper', '0', 'sleeper')", $database);
    $server->wait_until("select count(*) from pg_stat_activity where backend_type = 'durable_timers handler'
        and query like 'claiming a timer of %' and wait_event = 'SyncRep'", expected => '1');
    my $start = time();
    is($server->stop('fast', fail_ok => 1), 1, 'the server stops');
    cmp_ok(time() - $start, '<', 5, 'within five seconds');
    $server->adjust_conf('postgresql.conf', 'synchronous_standby_names', undef);
    $server->start;
    $server->fate_ok('sleeper', 'fired 1', 'afterwards it is handled', database => $database);
    is($server->sql('select effects()', $database), 'sleeper 1 slept', 'once, with its first attempt');
};

subtest 'a shutdown while handlers follow each other' => sub {
    my $database = $server->new_database('busy');
    $server->add_handler('brief', 'call public.took_effect(t); perform pg_sleep(0.01); return t.timer_id;',
        database => $database,
        max_attempts => 1, lease => '1 h');
    $server->sql("select plan('brief ' || n, '0', 'brief') from generate_series(1, 1500) n", $database);
    for my $round (1 .. 3) {
        $server->wait_until("select count(*) > $round * 150 from effect", database => $database);
        $server->restart;
        cmp_ok($server->sql("select count(*) from effect", $database), '<', 1500, "in the middle of it: $round");
    }
    $server->await_ok("select count(*) from timers.timer where status = 'fired'", 'all are handled',
        database => $database,
        expected => '1500');
    is($server->sql("select count(*), count(distinct name), max(attempt) from effect", $database), '1500|1500|1',
        'each once, with its first attempt');
};

subtest 'DROP DATABASE' => sub {
    for my $options ('', ' with (force)') {
        my $database = sleeping_database('dropped');
        quickly_ok("drop database $database$options", "it is dropped$options");
    }
};

subtest 'ALTER DATABASE ... RENAME' => sub {
    my $database = sleeping_database('old_name');
    quickly_ok('alter database old_name rename to new_name', 'it is renamed');
    resumes_ok('new_name', 'under the new name');
};

subtest 'CREATE DATABASE ... TEMPLATE' => sub {
    my $database = sleeping_database('original');
    quickly_ok("create database copy template $database", 'it is copied');
    resumes_ok($database, 'in the original');
    is($server->sql("select fate('sleeper')", 'copy'), 'scheduled 0', 'the copy waits to be armed');
};

subtest 'who may not' => sub {
    my $database = sleeping_database('guarded');
    my $worker = $server->sleeping_handler($database);
    $server->sql('create role owner_of_nothing createdb');
    like($server->sql_error("set role owner_of_nothing; $_"), qr/^42501 /, "refused: $_")
        for "drop database $database with (force)", "alter database $database rename to taken",
        "create database taken template $database";
    is($server->sleeping_handler($database), $worker, 'the handler was not even interrupted');
};

subtest 'DROP EXTENSION' => sub {
    my $database = sleeping_database('without');
    quickly_ok('set client_min_messages = warning; drop extension durable_timers cascade', 'it is dropped', $database);
    $server->await_ok("select count(*) from pg_stat_activity where backend_type ~ '^durable_timers'
        and datname = '$database'",
        'the workers go', expected => '0');
};

ok(slurp_file($server->logfile) !~ /PANIC|terminated by signal/, 'no worker crashed in all this');

done_testing();

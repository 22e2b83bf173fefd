# A dispatcher is in nobody's way who drops, renames, moves or copies its database, and is back when that is over.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0);
my $timers = 3000;

# A database whose dispatcher is busy for some seconds, and is so now.
sub busy_database {
    my ($database) = @_;
    $server->new_database($database);
    $server->sql("select plan('t' || n, n * interval '1 ms') from generate_series(1, $timers) n", $database);
    $server->wait_until("select count(*) > 0 from timers.outbox", database => $database);
    return $database;
}

# The server itself gives up after five seconds while somebody is connected.
sub quickly_ok {
    my ($command, $name) = @_;
    my ($status, $out, $error) = $server->psql('postgres', "set statement_timeout = '15 s'; $command");
    return is($error, '', $name);
}

sub all_delivered_ok {
    my ($database) = @_;
    $server->await_ok("select count(*) from timers.timer where status = 'scheduled'", 'every timer fires',
        database => $database, expected => '0');
    is($server->sql("select count(*) || ' ' || count(distinct timer_id) from timers.outbox", $database),
        "$timers $timers", 'each once');
    return;
}

sub delivers_ok {
    my ($database, $name) = @_;
    $server->sql("select plan('probe', '0')", $database);
    return $server->delivered_ok('probe', $name, database => $database, seconds => 10);
}

subtest 'DROP DATABASE' => sub {
    for my $options ('', ' with (force)') {
        my $database = busy_database('dropped');
        quickly_ok("drop database $database$options", "it is dropped$options");
        is($server->sql("select count(*) from pg_stat_activity where datname = '$database'"), '0', 'nobody is there');
    }
    my $database = $server->new_database('dropped');
    delivers_ok($database, 'a new database of that name has its dispatcher');
    quickly_ok("drop database $database", 'one that sleeps goes, too');
};

subtest 'ALTER DATABASE ... RENAME' => sub {
    busy_database('old_name');
    quickly_ok('alter database old_name rename to new_name', 'it is renamed');
    all_delivered_ok('new_name');
};

subtest 'ALTER DATABASE ... SET TABLESPACE' => sub {
    my $database = busy_database('moved');
    my $place = PostgreSQL::Test::Utils::tempdir();
    $server->sql("create tablespace elsewhere location '$place'");
    quickly_ok("alter database $database set tablespace elsewhere", 'it is moved');
    all_delivered_ok($database);
};

subtest 'CREATE DATABASE ... TEMPLATE' => sub {
    my $database = busy_database('original');
    quickly_ok("create database copy_$_ template $database strategy $_", "it is copied by $_")
        for 'wal_log', 'file_copy';
    all_delivered_ok($database);
};

subtest 'who may not' => sub {
    my $database = $server->new_database('guarded');
    my $dispatcher = $server->worker_pid('dispatcher', $database);
    $server->sql('create role stranger createdb');
    like($server->sql_error("set role stranger; $_"), qr/^42501 /, "refused: $_")
        for "drop database $database", "drop database $database with (force)",
        "alter database $database rename to taken", "alter database $database set tablespace elsewhere",
        "create database taken template $database";
    is($server->worker_pid('dispatcher', $database), $dispatcher, 'the dispatcher did not even leave');
    delivers_ok($database, 'timers are delivered');
};

subtest 'commands that fail' => sub {
    my $database = $server->new_database('wanted');
    my $session = $server->session($database);
    like($server->sql_error("drop database $database"), qr/^55006 /, 'somebody else is connected');
    $session->query_safe("select plan('seen', '0')");
    $server->delivered_ok('seen', 'timers are delivered again', database => $database, seconds => 10);
    $session->quit;
    like($server->sql_error("begin; drop database $database"), qr/^25001 /, 'in a transaction block');
    like($server->sql_error("drop database $database", $database), qr/^55006 /, 'from within');
    like($server->sql_error("alter database $database rename to postgres"), qr/^42P04 /, 'a name that is taken');
    like($server->sql_error("drop database nowhere"), qr/^3D000 /, 'a database that is not there');
    delivers_ok($database, 'timers are delivered again');
};

subtest 'several databases at once' => sub {
    my @databases = map { $server->new_database("shard_$_") } 1 .. 6;
    $server->sql("select plan('$_ ' || n, n * interval '5 ms', 'lane ' || n % 3) from generate_series(1, 200) n", $_)
        for @databases;
    $server->await_ok("select count(*) || ' ' || count(*) filter (where correlation_id like current_database() || ' %')
        from timers.outbox", "$_ delivers its own timers", database => $_, expected => '200 200') for @databases;
};

subtest 'the extension in template1' => sub {
    $server->add_extension('template1');
    $server->wait_for_sleep('template1');
    quickly_ok("create database child_$_", "database $_ is created") for 1 .. 3;
    delivers_ok('template1', 'the template has its dispatcher again');
};

unlike(slurp_file($server->logfile), qr/FATAL|PANIC|terminated by signal/, 'no worker failed in all this');

done_testing();

# Workers come with the extension and go with it, whatever they are doing, and are in no other command's way.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils;
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0, conf => 'max_prepared_transactions = 5');

sub dispatchers_query {
    my ($database) = @_;
    return "select count(*) from pg_stat_activity where datname = '$database' and backend_type like 'durable_timers%'";
}

sub delivers_ok {
    my ($database, $timer, $name) = @_;
    $server->sql("select plan('$timer', '0')", $database);
    return $server->delivered_ok($timer, $name, database => $database, seconds => 10);
}

subtest 'a database without the extension' => sub {
    $server->sql('create database plain');
    $server->new_database('fence');
    is($server->sql(dispatchers_query('plain')), '0', 'has no dispatcher');
};

subtest 'DROP EXTENSION while timers fire' => sub {
    my $database = $server->new_database('busy');
    for my $round (1 .. 3) {
        $server->sql("select plan('t' || n, n * interval '1 ms', 'lane ' || n % 7) from generate_series(1, 3000) n",
            $database);
        $server->wait_until("select count(*) > 0 from timers.outbox", database => $database);
        my ($status, $out, $error) = $server->psql($database,
            "set statement_timeout = '10 s'; drop extension durable_timers");
        is($error, '', 'it is dropped');
        $server->await_ok(dispatchers_query($database), 'the dispatcher leaves', expected => '0');
        $server->sql('create extension durable_timers', $database);
        delivers_ok($database, 'again', 'with the extension the dispatcher comes back');
        is($server->sql("select count(*) from timers.outbox", $database), '1',
            'nothing is left of what was there before');
    }
};

subtest 'DROP EXTENSION is rolled back' => sub {
    my $database = $server->new_database('kept');
    $server->sql("select plan('due', '500 ms')", $database);
    my $due = $server->sql("select fire_at from timers.timer", $database);
    my $session = $server->session($database);
    $session->query_safe("begin; set client_min_messages = error; drop extension durable_timers");
    $server->wait_for_clock("timestamptz '$due'");
    $session->query_safe('rollback');
    $session->quit;
    $server->delivered_ok('due', 'timers are delivered', database => $database, seconds => 10);
    $server->await_ok(dispatchers_query($database), 'there is one dispatcher', expected => '1');
};

subtest 'CREATE EXTENSION is rolled back' => sub {
    $server->sql('create database undone');
    my $log = -s $server->logfile;
    my $session = $server->session('undone');
    $session->query_safe("begin; create extension durable_timers;
        select timers.schedule_in(gen_random_uuid(), 'orders', 'a', '0')");
    is($server->sql(dispatchers_query('undone')), '0', 'no dispatcher while nobody else sees the extension');
    $session->query_safe('rollback');
    $session->quit;
    $server->new_database('another_fence');
    $server->await_ok(dispatchers_query('undone'), 'nor afterwards', expected => '0');
    unlike(slurp_file($server->logfile, $log), qr/ERROR|FATAL/, 'nothing has failed');
    $server->add_extension('undone');
    delivers_ok('undone', 'first', 'after CREATE EXTENSION timers are delivered');
};

subtest 'CREATE EXTENSION and a timer in one transaction' => sub {
    $server->sql('create database at_once');
    $server->sql("begin; create extension durable_timers;
        select timers.schedule_in(gen_random_uuid(), 'orders', 'a', '0'); commit", 'at_once');
    $server->await_ok('select count(*) from timers.outbox', 'the timer is delivered', database => 'at_once',
        expected => '1', seconds => 10);
    $server->sql('create database prepared');
    $server->sql("begin; create extension durable_timers;
        select timers.schedule_in(gen_random_uuid(), 'orders', 'a', '0'); prepare transaction 'create'", 'prepared');
    is($server->sql(dispatchers_query('prepared')), '0', 'no dispatcher before it is committed');
    $server->sql("commit prepared 'create'", 'prepared');
    $server->await_ok('select count(*) from timers.outbox', 'the timer of a prepared one, too', database => 'prepared',
        expected => '1', seconds => 10);
};

subtest 'a schema or a type of the same name' => sub {
    $server->sql('create database occupied');
    $server->sql('create schema timers', 'occupied');
    like($server->sql_error('create extension durable_timers', 'occupied'), qr/^42P06 /,
        'the extension takes nobody\'s schema');
    $server->sql('create table timers.timer (x int)', 'occupied');
    $server->stop;
    my $log = -s $server->logfile;
    $server->start;
    $server->sql('select 1', 'occupied');
    $server->wait_for_worker('dispatcher', 'kept');
    $server->await_ok(dispatchers_query('occupied'), 'a look-alike has no dispatcher', expected => '0');
    unlike(slurp_file($server->logfile, $log), qr/ERROR|FATAL|exited with exit code/, 'and makes none fail');
};

subtest 'who the dispatcher is' => sub {
    $server->sql('create role timer_owner superuser');
    $server->sql('create database owned');
    $server->sql('set role timer_owner; create extension durable_timers', 'owned');
    $server->sql('create table seen (who text);
        create function look() returns trigger language plpgsql as
        $$ begin insert into public.seen values (current_user || \' \' || session_user); return new; end $$;
        create trigger look before insert on timers.outbox for each row execute function look();
        grant all on seen to public;
        select timers.schedule_in(gen_random_uuid(), \'orders\', \'a\', \'0\')', 'owned');
    $server->await_ok('select who from seen', 'it works as the owner of the extension', database => 'owned',
        expected => 'timer_owner timer_owner', seconds => 10);
};

subtest 'commands that need the tables for themselves' => sub {
    my $database = $server->new_database('serviced');
    $server->sql("select plan('far', '1 hour'), plan('before', '0')", $database);
    $server->delivered_ok('before', 'a timer is delivered', database => $database);
    my $service = join ';', "set lock_timeout = '5 s'", 'vacuum full timers.timer', 'vacuum full timers.outbox',
        'reindex table timers.timer', 'cluster timers.timer using timer_pkey', 'analyze timers.timer',
        'begin; lock table timers.timer, timers.outbox, timers.claim, timers.process_manager; commit';
    my ($status, $out, $error) = $server->psql($database, $service);
    is($error, '', 'a sleeping dispatcher holds no lock');
    delivers_ok($database, 'after', 'timers are delivered afterwards');
    $server->sql("select plan('far', '0')", $database);
    $server->delivered_ok('far', 'those from before, too', database => $database, seconds => 10);
};

done_testing();

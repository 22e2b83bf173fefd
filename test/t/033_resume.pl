# A resume that nobody ends is over when its lease is: by itself, whatever is switched off. Of a hundred who claim at
# once one wins.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Utils qw(append_to_file);
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0, conf => 'max_connections = 150');

# A dead timer, and what must be the same when it is dead again.
my $state = "select concat_ws(' ', status, attempts, last_error, died_at, fire_at) from timers.timer
    where timer_id = id('%s')";

sub make_dead {
    my ($database, $name, $lane) = @_;
    $server->sql("select plan('$name', '-1 hour', '$lane');
        select timers.claim_due('$lane', lease => '1 day');
        select timers.dead_letter(id('$name'), 'broken')", $database);
    return $server->sql(sprintf($state, $name), $database);
}

sub claim {
    my ($database, $name, $lease) = @_;
    return $server->sql("select claim_token from timers.claim_dead(id('$name'), '$lease')", $database);
}

sub dead_again_ok {
    my ($database, $name, $before, $what) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $server->await_ok(sprintf($state, $name), $what, database => $database, expected => $before);
    is($server->sql("select count(*) from timers.claim where timer_id = id('$name')", $database), '0',
        '... and nobody holds it');
    return;
}

subtest 'nobody does anything' => sub {
    my $database = $server->new_database('idle');
    $server->sql("select timers.configure('calls', delivery => 'external')", $database);
    my $before = make_dead($database, 'alone', 'calls');
    $server->sql("select timers.pause('calls')", $database);
    $server->wait_for_sleep($database);
    claim($database, 'alone', '3 s');
    $server->await_ok("select w.sleeps_until <= c.lease_until from timers.workers w, timers.claim c
        union all select true where not exists (select from timers.claim)",
        'the dispatcher sleeps no longer than the lease', database => $database, seconds => 2);
    dead_again_ok($database, 'alone', $before, 'then the timer is dead, as before');
    $server->await_ok("select sleeps_until > clock_timestamp() + interval '40 s' from timers.workers",
        'and the dispatcher sleeps again', database => $database);
};

subtest 'a renewal' => sub {
    my $database = $server->new_database('renewed');
    $server->sql("select timers.configure('calls', delivery => 'external')", $database);
    my $before = make_dead($database, 'kept', 'calls');
    my $other = make_dead($database, 'other', 'calls');
    # In one transaction: nobody knows of the first lease.
    my ($token, $first) = split /\|/, $server->sql("
        select claim_token, lease_until from timers.claim_dead(id('kept'), '1 s');
        select timers.renew_resume(timer_id, token, '1 hour') from timers.claim \\g /dev/null", $database);
    # Another one ends after it: that much time has gone by, and the dispatcher has been up.
    $server->wait_for_clock("timestamptz '$first'", $database);
    claim($database, 'other', '100 ms');
    dead_again_ok($database, 'other', $other, 'one is over');
    is($server->sql("select status('kept')", $database), 'resuming', 'not the one that was renewed');
    $server->sql("select timers.renew_resume(id('kept'), '$token', '100 ms')", $database);
    dead_again_ok($database, 'kept', $before, 'until its new lease ends');
};

subtest 'somebody holds the row' => sub {
    my $database = $server->new_database('locked');
    $server->sql("select timers.configure('calls', delivery => 'external')", $database);
    my $before = make_dead($database, 'locked', 'calls');
    my $other = make_dead($database, 'other', 'calls');
    claim($database, 'locked', '1 hour');
    my $session = $server->session($database);
    $session->query_safe("begin; select 1 from timers.timer where timer_id = id('locked') for update");
    $server->sql('update timers.claim set lease_until = clock_timestamp()', $database);
    claim($database, 'other', '100 ms');
    dead_again_ok($database, 'other', $other, 'he is not waited for');
    is($server->sql("select status('locked')", $database), 'resuming', 'his own stays');
    $session->query_safe('rollback');
    $session->quit;
    dead_again_ok($database, 'locked', $before, 'until he lets go');
};

subtest 'a database that is not armed' => sub {
    my $database = $server->new_database('copy');
    $server->sql("select timers.configure('calls', delivery => 'external')", $database);
    my $before = make_dead($database, 'resumed', 'calls');
    $server->sql("select plan('fired', '-1 hour', 'calls')", $database);
    $server->sql("update timers.armed set identity = 'another database'", $database);
    $server->wait_until('select state from timers.workers', database => $database, expected => 'not armed');
    like($server->sql("select next_due is null, explanation from timers.inspect(id('fired'))", $database),
        qr/^t\|workers claim it/, 'what workers claim does not fire here anyway');
    $server->sql("select plan('ahead', '1 hour')", $database);
    like($server->sql("select next_due is null, explanation from timers.inspect(id('ahead'))", $database),
        qr/^t\|.*timers\.arm\(\)/, 'inspect says why nothing else does');
    $server->sql("select timers.claim_due('calls', lease => '1 s')", $database);
    claim($database, 'resumed', '2 s');
    dead_again_ok($database, 'resumed', $before, 'a resume ends all the same');
    is($server->sql("select status('fired')", $database), 'firing', 'where nothing is requeued');
    $server->sql('select timers.arm()', $database);
    $server->await_ok("select status('fired')", 'until it is armed', database => $database, expected => 'scheduled');
};

subtest 'the server crashes meanwhile' => sub {
    my $database = $server->new_database('crashed');
    $server->sql("select timers.configure('calls', delivery => 'external')", $database);
    my $before = make_dead($database, 'crashed', 'calls');
    my $token = claim($database, 'crashed', '1 s');
    $server->stop('immediate');
    $server->start;
    dead_again_ok($database, 'crashed', $before, 'its resume ends when the server is up');
    like($server->sql_error("select timers.complete_resume(id('crashed'), '$token', gen_random_uuid())", $database),
        qr/^TM003/, 'and cannot be completed');
};

subtest 'without workers' => sub {
    my $alone = TimerServer->start_new('alone', preload => 0);
    $alone->sql("select timers.configure('calls', delivery => 'external')");
    for my $ends ('select timers.recover_expired_resumes()', 'select timers.fire_due() + 1') {
        $alone->sql("select plan('$ends', '-1 hour', 'calls'), timers.dead_letter(id('$ends'), 'broken')");
        my $before = $alone->sql(sprintf($state, $ends));
        $alone->sql("select timers.claim_dead(id('$ends'), '1 ms')");
        $alone->wait_for_clock('(select lease_until from timers.claim)');
        is($alone->sql("select status('$ends')"), 'resuming', 'nothing happens by itself');
        like($alone->sql_error("select timers.retry_dead(id('$ends'))"), qr/^TM002/, 'its id does not move it');
        is($alone->sql($ends), '1', 'until somebody calls');
        is($alone->sql(sprintf($state, $ends)), $before, 'then it is dead, as before');
    }
    $alone->sql("select plan('ahead', '1 hour')");
    like($alone->sql("select next_due is null, explanation from timers.inspect(id('ahead'))"),
        qr/^t\|.*shared_preload_libraries/, 'inspect says why nothing fires');
    $alone->stop;
};

subtest 'retention comes by what a resume has ended' => sub {
    $server->sql('create database kept');
    $server->sql('create extension durable_timers', 'kept');
    $server->sql(q{select timers.schedule(i, 'quiet', 'c', '2001-01-01 00:00+00'), timers.dead_letter(i, 'broken')
        from gen_random_uuid() i}, 'kept');
    $server->await_ok(q{select count(*) from timers.safe_mark where safe_at > '2001-01-01'},
        'nothing is left to do', database => 'kept', expected => '1');
    $server->sql(q{select timers.complete_resume(c.timer_id, c.claim_token, gen_random_uuid())
        from timers.timer t cross join lateral timers.claim_dead(t.timer_id) c}, 'kept');
    $server->await_ok('select m.safe_at > t.wake_at from timers.safe_mark m cross join timers.timer t',
        'the mark passes the timer', database => 'kept');
};

subtest 'a hundred claim ten at once' => sub {
    my $database = $server->new_database('crowd');
    $server->sql(q{
        select timers.configure('calls', delivery => 'external');
        select plan('t' || n, '1 hour', 'calls'), timers.dead_letter(id('t' || n), 'broken')
        from generate_series(1, 10) n;
        create table outcome (round integer, client integer, timer text, answer text);
        -- Everybody begins when the lock is free, and takes the timers in an order of his own.
        create procedure claim_each(round integer, client integer) language plpgsql as $$
        declare
            name text;
            token uuid;
        begin
            perform pg_advisory_xact_lock_shared(1);
            for name in select 't' || n from generate_series(1, 10) n order by md5(n::text || client) loop
                commit;
                begin
                    select c.claim_token into token
                    from timers.claim_dead(id(name), '1 day', 'calls', 0, 'client ' || client) c;
                    insert into outcome values (round, client, name, token);
                exception when sqlstate 'TM004' then
                    insert into outcome values (round, client, name, 'TM004');
                end;
            end loop;
        end $$}, $database);
    my $script = $server->basedir . '/claim_each.sql';
    append_to_file($script, 'call claim_each(:round, :client_id);');
    for my $round (1, 2) {
        my $gate = $server->session($database);
        $gate->query_safe('select pg_advisory_lock(1)');
        my @command = ('pgbench', '-n', '-c', '100', '-j', '2', '-t', '1', '-D', "round=$round", '-f', $script);
        my $crowd = IPC::Run::start([ @command, $server->connstr($database) ],
            '<', \undef, '>', \my $out, '2>', \my $error);
        $server->wait_until("select count(*) from pg_locks where locktype = 'advisory' and not granted",
            database => $database, expected => '100');
        $gate->query_safe('select pg_advisory_unlock(1)');
        $gate->quit;
        ok($crowd->finish, 'they all had their turn') or diag($out, $error);
        my $outcome = "from outcome where round = $round";
        is($server->sql("select count(*), count(distinct client) $outcome", $database), '1000|100', 'each tried each');
        is($server->sql("select count(*), count(distinct timer) $outcome and answer <> 'TM004'", $database), '10|10',
            'each was won by one');
        is($server->sql("select count(*) from timers.claim c join outcome o
            on o.answer = c.token::text and id(o.timer) = c.timer_id and c.claimed_by = 'client ' || o.client
            where o.round = $round", $database), '10', 'whose claims these are');
        is($server->sql("select count(*) from timers.timer where status = 'resuming' and attempts = 0
            and last_error = 'broken' and died_at is not null", $database), '10', 'and nothing else has changed');
        # The next round claims what nobody has given back.
        $server->sql('update timers.claim set lease_until = clock_timestamp()', $database) if $round == 1;
    }
    is($server->sql("select count(timers.complete_resume(id(timer), answer::uuid, id(answer))) from outcome
        where round = 2 and answer <> 'TM004'", $database), '10', 'the winners complete what they won');
    like($server->sql_error("select timers.complete_resume(id(timer), answer::uuid, id(answer)) from outcome
        where round = 1 and answer <> 'TM004'", $database), qr/^TM003/, 'and the first ones nothing');
};

done_testing();

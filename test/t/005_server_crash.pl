# When the server dies, what was committed fires exactly once and what was not leaves nothing.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use PostgreSQL::Test::Utils;
use TimerServer;
use Test::More;

# The processes of a server, its postmaster first.
sub processes_of {
    my ($server) = @_;
    my ($postmaster) = slurp_file($server->data_dir . '/postmaster.pid') =~ /^(\d+)/;
    # A process may be gone by the time it is looked at.
    my @processes = map { eval { slurp_file($_) } // '' } glob('/proc/[0-9]*/stat');
    return ($postmaster, map { /^(\d+) \(.*\) \S $postmaster /s ? $1 : () } @processes);
}

# As when the machine loses power: no process gets to do anything.
sub kill_all {
    my ($server) = @_;
    my @processes = processes_of($server);
    ok(@processes > 6, 'the postmaster has processes');
    kill 'KILL', @processes;
    $server->kill9;
    # Its memory and its socket are free when the last process has gone.
    my $deadline = time() + $TimerServer::patience;
    while (kill(0, @processes) > 0) {
        die 'a killed process does not go' if time() > $deadline;
        select undef, undef, undef, 0.02;
    }
    return;
}

subtest 'kill -9 of a backend in the middle of scheduling' => sub {
    my $server = TimerServer->start_new('backend', conf => 'restart_after_crash = on');
    my $open = $server->session;
    my $done = $server->session;
    $done->query_safe("select plan('committed ' || n, '500 ms') from generate_series(1, 50) n");
    $open->query_safe("select plan('moved', '1 hour')");
    $open->query_safe("begin; select plan('open ' || n, '0') from generate_series(1, 50) n;
        select plan('moved', '0'), plan('new lane', '0', 'new')");
    my $log = -s $server->logfile;
    is(kill('KILL', $open->query_safe('select pg_backend_pid()')), 1, 'the backend is killed');
    $server->wait_for_log(qr/all server processes terminated; reinitializing/, $log);
    $server->wait_until('select true');
    $server->await_ok("select count(*) from timers.outbox where correlation_id like 'committed %'",
        'all committed timers are delivered', expected => '50');
    $server->sql("select plan('fence', '0'), plan('fence', '0', 'new')");
    $server->delivered_ok('fence', 'and so is a new one');
    is($server->sql("select count(*) || ' ' || count(distinct timer_id) from timers.outbox"), '51 51', 'each once');
    is($server->sql("select status('moved') || ' ' || count(*) from timers.timer where correlation_id !~ 'committed'"),
        'scheduled 2', 'the open transaction left nothing');
    { local $@; eval { $_->quit } for $open, $done; }
    $server->stop;
};

subtest 'kill -9 of every process before the dispatcher has heard of a lane' => sub {
    my $server = TimerServer->start_new('unheard');
    kill 'STOP', $server->worker_pid('dispatcher');
    # By hand, so that the lane has no settings either: only the timer itself tells of it.
    $server->sql("insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
        values (id('unheard'), 'new lane', 'unheard', clock_timestamp())");
    kill_all($server);
    $server->start;
    $server->delivered_ok('unheard', 'the timer is delivered', seconds => 10);
    $server->stop;
};

# Each client keeps a ledger of what it committed, in the transaction that scheduled: 9 of 10 transactions schedule a
# timer for a random instant of the run, one cancels what the client scheduled last, if that has not fired.
my $timers = 10000;
my $script = <<'SQL';
\set lane random(1, 5)
\set moment random(1, 20000)
\set action random(1, 10)
\if :action = 1
update ledger set cancelled = true where timer_id = :last::uuid and timers.cancel(timer_id);
\else
with entry as (
    insert into ledger (timer_id, fire_at)
    values (gen_random_uuid(), (select started from run) + :moment * interval '1 ms')
    returning timer_id, fire_at
), scheduled as (
    select timers.schedule(timer_id, 'lane ' || :lane, 'c' || :client_id, fire_at) from entry
)
select timer_id as last from entry, scheduled \gset
\endif
SQL

sub start_load {
    my ($server, $file) = @_;
    # Eight sessions that schedule until the server dies or they are stopped.
    my @command = ('pgbench', '-n', '-M', 'prepared', '-c', '8', '-j', '2', '-R', '1000', '-T', '300', '-f', $file,
        '-D', 'last=00000000-0000-0000-0000-000000000000', $server->connstr('postgres'));
    my ($out, $error) = ('', '');
    return IPC::Run::start(\@command, '<', \undef, '>', \$out, '2>', \$error);
}

subtest 'death of the server under load' => sub {
    my $server = TimerServer->start_new('loaded');
    $server->sql("
        create table ledger (timer_id uuid primary key, fire_at timestamptz not null,
            cancelled boolean not null default false);
        create table run as select clock_timestamp() as started");
    my $file = $server->basedir . '/schedule.sql';
    append_to_file($file, $script);
    my $counts = "(select count(*) from ledger) as planned, (select count(*) from timers.outbox) as delivered";
    for my $death (
        [ 'kill -9 of every process', 0.3, sub { kill_all($server) } ],
        [ 'immediate shutdown', 0.6, sub { $server->stop('immediate') } ])
    {
        my ($how, $share, $kill) = @$death;
        my $load = start_load($server, $file);
        # In the thick of it: much is scheduled, some has fired, more is to come.
        $server->wait_until("select planned > $share * $timers and delivered > 0 from (select $counts) c",
            seconds => 60);
        $kill->();
        $load->finish;
        $server->start;
        is($server->sql("select delivered between 1 and planned - 1 from (select $counts) c"),
            't', "some timers were delivered before the $how, some were not");
    }
    my $load = start_load($server, $file);
    $server->wait_until("select count(*) >= $timers from ledger", seconds => 60);
    $load->signal('TERM');
    $load->finish;

    $server->await_ok("select count(*) from timers.timer where status = 'scheduled'", 'in the end all has fired',
        expected => '0', seconds => 60);
    is($server->sql("
        select count(*) filter (where copies is distinct from 1 and not cancelled) || ' lost or doubled, ' ||
               count(*) filter (where copies is not null and cancelled) || ' delivered though cancelled, ' ||
               count(*) filter (where l.timer_id is null) || ' of nobody'
        from ledger l
        full join (select timer_id, count(*) as copies from timers.outbox group by timer_id) o using (timer_id)"),
        '0 lost or doubled, 0 delivered though cancelled, 0 of nobody',
        'every committed timer was delivered once, and no other');
    cmp_ok($server->sql("select count(*) from ledger where cancelled"), '>', 10, 'some were cancelled');
    is($server->sql("select count(*) from timers.outbox where fired_at < fire_at"), '0', 'none before it was due');
    is($server->sql("select count(*) from timers.timer t full join ledger l using (timer_id)
        where t.timer_id is null or l.timer_id is null"), '0', 'timers and ledger agree');
};

done_testing();

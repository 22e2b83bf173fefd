# However a database is dumped, restored, cloned or upgraded, nothing is lost, and the copy waits until it is armed.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use HandlerServer;
use PostgreSQL::Test::Utils;
use Test::More;

my $conf = "max_worker_processes = 100\nmax_connections = 150";
my $server = HandlerServer->start_new('main', extension => 0, conf => $conf);

# All that users have. Where a timer stands in the queue is the engine's business.
my $everything = q{
select 'timer', (timer_id, created_at, fire_at, updated_at, attempts, forgiven, status, fired_event_id, process_manager,
    correlation_id, payload, died_at, last_error)::text from timers.timer
union all select 'claim', c::text from timers.claim c
union all select 'event', o::text from timers.outbox o
union all select 'settings', p::text from timers.process_manager p
union all select 'position', last_value || ' ' || is_called from timers.outbox_position_seq
union all select 'effect', e::text from public.effect e
order by 1, 2};

# Timers in every state and of every delivery, and so many that a parallel restore takes its time.
sub fill {
    my ($database) = @_;
    $server->sql("
        insert into timers.timer (timer_id, fire_at, process_manager, correlation_id, status, fired_event_id)
        select id('old ' || n), now(), 'old', 'old ' || n, 'fired', id('old ' || n) from generate_series(1, 3000) n;
        select timers.configure('notified', delivery => 'notify', channel => 'calls', lease => '3 h',
            max_attempts => 3);
        select timers.configure('claimed', delivery => 'external', retention => '3 days', lease => '3 h');
        select timers.configure('belled', channel => 'bell', lease => '7 min');
        select timers.pause('held');", $database);
    $server->add_handler('handled', 'call public.took_effect(t); return t.timer_id;', database => $database,
        retry_delay => '2 s', retry_factor => 3, retry_ceiling => '1 min', max_concurrent => 2,
            handler_timeout => '9 s');
    $server->sql("select plan('event ' || n, '0', 'belled') from generate_series(1, 3000) n;
        select plan('called', '0', 'notified'), plan('worked on', '0', 'claimed'), plan('handled', '0', 'handled'),
            plan('cancelled', '1 h', 'claimed'), plan('dying', '1 h', 'claimed')", $database);
    $server->sql("select timers.claim_due('claimed'), timers.cancel(id('cancelled')),
        timers.dead_letter(id('dying'), 'why')", $database);
    $server->wait_until("select count(*) = 3000 and status('called') = 'firing' and status('handled') = 'fired'
        and status('worked on') = 'firing' from timers.outbox", database => $database);
    # What is due when the copies are made.
    $server->sql("select timers.lease_events(10, '1 h');
        select timers.pause('belled'), timers.pause('notified'), timers.pause('handled');
        select plan('due belled ' || n, '0', 'belled'), plan('due notified ' || n, '0', 'notified'),
            plan('due handled ' || n, '0', 'handled'), plan('due held ' || n, '0', 'held'),
            plan('far ' || n, '1 day', 'belled')
        from generate_series(1, 200) n", $database);
    return;
}

# A copy that has just come about.
sub waits_ok {
    my ($server, $database, $expected, $how) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $server->await_ok("select state from timers.workers where worker = 'dispatcher'", "$how: it is not armed",
        database => $database, expected => 'not armed');
    like($server->sql("select explanation from timers.workers where worker = 'dispatcher'", $database),
        qr/timers\.arm\(\)/, 'it says what to do');
    my %left = map { $_ => 1 } split /\n/, $server->sql($everything, $database);
    my @missing = grep { !delete $left{$_} } split /\n/, $expected;
    is(join("\n", @missing[ 0 .. ($#missing < 9 ? $#missing : 9) ]), '', 'nothing is missing');
    is(join("\n", (sort keys %left)[ 0 .. (keys %left < 10 ? keys(%left) - 1 : 9) ]), '', 'nothing is there besides');
    # That nothing fires has another reason from now on.
    $server->sql("update timers.process_manager set paused = false where process_manager <> 'held';
        select plan('new', '0')", $database);
    return;
}

my $fired = "select count(*) filter (where (correlation_id like 'due %' or correlation_id = 'new')
    and status <> 'scheduled')
    || ' ' || (select count(*) from timers.outbox) || ' ' || (select count(*) from effect) from timers.timer";

# A copy that has had its time.
sub fires_ok {
    my ($server, $database, $how) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is($server->sql($fired, $database), '0 3000 1', "$how: nothing has fired");
    $server->sql('select timers.arm()', $database);
    my %with = (database => $database);
    $server->await_ok('select count(*) from timers.outbox', 'armed, it delivers events', %with, expected => '3201');
    $server->await_ok("select count(*) from timers.claim where kind = 'notify'", 'calls listeners', %with,
        expected => '201');
    $server->await_ok("select count(*) from timers.timer where process_manager = 'handled' and status = 'fired'",
        'and runs handlers', %with, expected => '201');
    is($server->sql("select (select count(distinct timer_id) from timers.outbox) || ' '
        || (select count(distinct position) from timers.outbox) || ' ' || (select count(distinct name) from effect)
        || ' ' || (select count(*) from effect)", $database), '3201 3201 201 201', 'each once');
    is($server->sql("select (select string_agg(distinct status::text, ' ') from timers.timer
            where correlation_id ~ '^(due held|far)')
        || ' ' || (select count(*) from timers.outbox where leased_until is not null)", $database), 'scheduled 10',
        'what is paused, far away or leased stays so');
    return;
}

my $original = $server->new_database('original');
fill($original);
my $expected = $server->sql($everything, $original);
my $here = $server->basedir;

sub dump_to {
    my ($file, @options) = @_;
    system_or_bail('pg_dump', '-f', "$here/$file", @options, $server->connstr($original));
    return;
}

sub run_script {
    my ($database, $file) = @_;
    system_or_bail('psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-o', '/dev/null', '-d', $server->connstr($database),
        '-f', "$here/$file");
    return;
}

sub restore {
    my ($database, $file, @options) = @_;
    system_or_bail('pg_restore', '--exit-on-error', @options, '-d', $server->connstr($database), "$here/$file");
    return;
}

# A database that has the extension already, and fires.
sub live_database {
    my ($database) = @_;
    $server->new_database($database);
    $server->sql('create function public.handled(t timers.timer) returns uuid language plpgsql as
        $$ begin call public.took_effect(t); return t.timer_id; end $$', $database);
    return;
}

my %copies = (
    plain => sub { $server->sql("create database $_[0]"); run_script($_[0], 'plain.sql') },
    inserts => sub { $server->sql("create database $_[0]"); run_script($_[0], 'inserts.sql') },
    in_one_transaction => sub { $server->sql("create database $_[0]");
        restore($_[0], 'custom', '--single-transaction') },
    in_parallel => sub { $server->sql("create database $_[0]"); restore($_[0], 'directory', '--jobs=4') },
    by_sections => sub { $server->sql("create database $_[0]");
        restore($_[0], 'custom', "--section=$_") for 'pre-data', 'data', 'post-data' },
    data_only => sub { live_database($_[0]); run_script($_[0], 'data.sql') },
    data_in_parallel => sub { live_database($_[0]); restore($_[0], 'directory', '--data-only', '--jobs=4') },
    clone => sub { $server->sql("create database $_[0] template $original") });

dump_to('plain.sql');
dump_to('inserts.sql', '--column-inserts');
dump_to('custom', '--format=custom');
dump_to('directory', '--format=directory', '--jobs=2');
dump_to('data.sql', '--data-only');

for my $how (sort keys %copies) {
    subtest $how => sub {
        $copies{$how}->($how);
        waits_ok($server, $how, $expected, $how);
    };
}

subtest 'meanwhile' => sub {
    $server->sql('create database clone_of_a_clone template clone');
    # Neither a restart nor a crash arms a copy.
    $server->stop('immediate');
    $server->start;
    $server->sql("select plan('fence', '0', 'fence')", $original);
    $server->delivered_ok('fence', 'the original fires on', database => $original);
    my %warned = map { $_ => 1 } slurp_file($server->logfile) =~
        /WARNING:  durable_timers: the timers of database "(\w+)" do not fire/g;
    is(join(' ', sort keys %warned), join(' ', sort 'clone_of_a_clone', keys %copies), 'the log names the copies');
    $server->sql('grant usage on schema timers to stranger', 'plain');
    like($server->sql_error('set role stranger; select timers.arm()', 'plain'), qr/^42501 /, 'not everybody may arm');
    $server->sql('begin; select timers.arm(); rollback', 'plain');
    $server->await_ok("select state from timers.workers where worker = 'dispatcher'", 'arming rolled back is no arming',
        database => 'plain', expected => 'not armed');
};

for my $how (sort 'clone_of_a_clone', keys %copies) {
    subtest "$how, armed" => sub { fires_ok($server, $how, $how) };
}

subtest 'an upgraded cluster' => sub {
    my $before = $server->sql($everything, $original);
    $server->stop;
    my $new = HandlerServer->new('new');
    $new->init;
    $new->append_conf('postgresql.conf', "timezone = 'UTC'\nshared_preload_libraries = 'durable_timers'\n$conf");
    chomp(my $binaries = `pg_config --bindir`);
    chdir PostgreSQL::Test::Utils::tempdir() or die;
    command_ok([ 'pg_upgrade', '--no-sync', '-b', $binaries, '-B', $binaries,
        '-d', $server->data_dir, '-D', $new->data_dir, '-s', $new->host, '-p', $server->port, '-P', $new->port ],
        'it is upgraded');
    $new->start;
    $new->await_ok("select state from timers.workers where worker = 'dispatcher'",
        'a database that was armed is no more',
        database => 'plain', expected => 'not armed');
    # Its lanes are paused, but the fence's.
    waits_ok($new, $original, $before, 'original');
    $new->sql("delete from timers.outbox where correlation_id = 'fence'", $original);
    fires_ok($new, $original, 'original');
    $new->restart;
    $new->await_ok("select state from timers.workers where worker = 'dispatcher'", 'and stays armed',
        database => $original, expected => 'running');
};

done_testing();

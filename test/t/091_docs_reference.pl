# Handlers, limits, ids and notifications are as the reference says.
use strict;
use warnings;
use Digest::SHA qw(sha1);
use FindBin;
use lib "$FindBin::RealBin/lib";
use Document;
use JSON::PP qw(decode_json);
use TimerServer;
use Test::More;

my $data = document('docs/data.md');
my $server = TimerServer->start_new('reference');

sub sorted { return [ sort @_ ] }

subtest 'a handler may and may not do what the reference says' => sub {
    my $database = $server->new_database('restricted');
    $server->sql(q{
        create role handling;
        create schema handling authorization handling;
        grant usage on schema timers to handling;
        set role handling;
        create table handling.parent (id integer primary key);
        create table handling.child (id integer references handling.parent deferrable initially deferred);
        create table handling.seen (correlation_id text, what text);
        create function handling.handle(t timers.timer) returns uuid language plpgsql as $$
        begin
            insert into handling.seen
            values (t.correlation_id, concat_ws(' ', current_user, current_setting('transaction_isolation'),
                t.status, t.attempts, current_setting('search_path'), current_setting('lock_timeout')));
            execute t.payload ->> 'does';
            return gen_random_uuid();
        end $$;
        reset role;
        select timers.configure('handled', delivery => 'handler', handler => 'handling.handle', run_as => 'handling',
                                max_attempts => 1, max_concurrent => 1)}, $database);
    my $write = 'insert into handling.parent values (%d); insert into handling.child values (%d)';
    my %may_not = (
        'a temporary table' => 'create temporary table t ()',
        'LISTEN' => 'listen c',
        'PREPARE' => 'prepare p as select 1',
        'a cursor WITH HOLD' => 'declare c cursor with hold for select 1',
        'SET ROLE' => 'set role postgres',
        'a deferred constraint' => sprintf($write, 1, 1));
    my %may = (
        'NOTIFY' => 'notify c',
        'SET' => "set search_path = public; set lock_timeout = '7 ms'; select pg_advisory_lock(1)",
        'a constraint made immediate' => 'set constraints all immediate; ' . sprintf($write, 2, 2));
    for my $what (sort(keys %may_not), sort(keys %may)) {
        my $statement = $may_not{$what} // $may{$what};
        $server->sql("select timers.schedule_in(id('$what'), 'handled', '$what', '0',
            jsonb_build_object('does', \$\$$statement\$\$))", $database);
        $server->await_ok("select status('$what')", "$what: " . ($may{$what} ? 'it may' : 'it may not'),
            database => $database, expected => $may{$what} ? 'fired' : 'dead');
    }
    is($server->sql('select distinct what from handling.seen', $database),
        'handling read committed firing 1 pg_catalog, pg_temp 0', 'each begins with the same, whatever the last did');
    is($server->sql("select count(*) from pg_locks where locktype = 'advisory'"), '0', 'no advisory lock is left');
};

subtest 'the limits are where the reference says' => sub {
    my %longest = section($data, '## Limits') =~ /^\| (name of a process manager|correlation id|channel) \| 1 to ([\d,]+) bytes/mg;
    tr/,//d for values %longest;
    my %call = (
        'name of a process manager' => q{select timers.pause(repeat('x', %d))},
        'correlation id' => q{select timers.schedule(gen_random_uuid(), 'p', left(string_agg(md5(n::text), ''), %d), now())
            from generate_series(1, 99) n},
        'channel' => q{select timers.configure('p', channel => repeat('x', %d))});
    is_deeply(sorted(keys %longest), sorted(keys %call), 'each has one');
    for my $what (sort keys %call) {
        $server->sql(sprintf $call{$what}, $longest{$what});
        like($server->sql_error(sprintf $call{$what}, $longest{$what} + 1), qr/^22023 .*\b$longest{$what} bytes/,
            "$what: up to there");
    }
};

subtest 'ids derive as the reference says' => sub {
    my $uuid5 = sub {
        my ($namespace, $name) = @_;
        my @bytes = unpack 'C16', sha1(pack('H32', $namespace =~ s/-//gr) . $name);
        $bytes[6] = $bytes[6] & 0x0f | 0x50;
        $bytes[8] = $bytes[8] & 0x3f | 0x80;
        return join '-', unpack 'A8 A4 A4 A4 A12', unpack 'H32', pack 'C16', @bytes;
    };
    my @vectors = section($data, '## Ids') =~ /^\| (\w+) id \| `(.*?)`, `(.*?)` \| `(.*?)` \|$/mg;
    is(@vectors, 8, 'there is an example of each');
    while (my ($kind, $namespace, $name, $id) = splice @vectors, 0, 4) {
        my $derived = $kind eq 'timer' ? "timers.timer_id('$namespace', '$name')"
            : "timers._event_id('$namespace', '1970-01-01 UTC'::timestamptz + $name * interval '1 us')";
        is($server->sql("select $derived"), $id, "the $kind id here");
        is($uuid5->($namespace, $name), $id, "the $kind id in another language");
    }
};

subtest 'a notification has the keys that the reference says' => sub {
    $server->sql("select timers.configure('sent', delivery => 'notify', channel => 'sent')");
    my $session = $server->session;
    $session->query('listen sent');
    $server->sql(q{select timers.schedule(id('short'), 'sent', 'c', now());
        select timers.schedule(id('long'), 'sent', 'c', now(), jsonb_build_object('text', repeat('x', 8000)))});
    my @keys = map { [ keys %{ decode_json($_->[1]) } ] } TimerServer::notifications($session, 2);
    $session->quit;
    my @written = split /\n/, section($data, '## Notifications');
    my %row = map { /^\| `(\w+)` \| (.*) \|/ ? ($1 => $2) : () } @written;
    my ($long, $short) = sort { @$a <=> @$b } @keys;
    is_deeply(sorted(@$short), sorted(grep { $_ ne 'fetch' } keys %row), 'one that fits');
    is_deeply(sorted(@$long), sorted(grep { $row{$_} !~ /not when `fetch`/ } keys %row), 'one that does not');
};

done_testing();

# A handler that fails leaves nothing but its error, is tried again ever later, and the timer dies at its ceiling.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use HandlerServer;
use PostgreSQL::Test::Utils;
use Test::More;

my $server = HandlerServer->start_new('main');

# What every attempt came to, as it was written down; waits in milliseconds.
$server->sql(q{
create table history (position bigint generated always as identity, name text, status text, attempts integer,
    last_error text, wait double precision, died boolean);
create function keep_history() returns trigger language plpgsql as $$
begin
    insert into public.history (name, status, attempts, last_error, wait, died)
    values (new.correlation_id, new.status, new.attempts, new.last_error,
        extract(epoch from new.fire_at - new.updated_at) * 1000, new.died_at is not null);
    return null;
end $$;
create trigger keep_history after update on timers.timer for each row when (new.status <> 'firing')
    execute function keep_history();
});

my $failing = "call public.took_effect(t); raise exception 'attempt % failed', t.attempts;";

subtest 'an exception' => sub {
    $server->add_handler('failing', $failing, max_attempts => 5, retry_delay => '100 ms', retry_factor => 3,
        retry_ceiling => '500 ms');
    $server->sql("select plan('poor', '0', 'failing')");
    $server->fate_ok('poor', 'dead 5: timer exceeded attempt ceiling of 5', 'after five attempts the timer is dead');
    is($server->sql("select string_agg(status || ' ' || attempts || ' ' || last_error || ' ' || died, ', '
        order by position) from history where name = 'poor'"),
        join(', ', map({ "scheduled $_ attempt $_ failed false" } 1 .. 4),
            'dead 5 timer exceeded attempt ceiling of 5 true'), 'the error is kept meanwhile');
    # Up to a tenth is added to each; the clock is read a little later for updated_at.
    is($server->sql("select string_agg((wait between due - 20 and due * 1.1)::text || ' ' || due, ', '
        order by position)
        from history join (values (1, 100), (2, 300), (3, 500), (4, 500)) w (attempts, due) using (attempts)
        where name = 'poor'"), 'true 100, true 300, true 500, true 500', 'the waits grow to their ceiling');
    is($server->sql("select effects('poor')"), '', 'no attempt had an effect');
    is($server->sql("select count(*) from timers.claim where timer_id = id('poor')"), '0', 'the claim is gone');
    like(slurp_file($server->logfile),
        qr/LOG:  durable_timers: the handler of process manager "failing" failed: attempt 5 failed/,
        'the log has every error');
};

subtest 'what is kept of an error' => sub {
    my %raised = (
        'of the server' => [ 'perform 1 / 0;', 'division by zero' ],
        'with a state of its own' => [ "raise sqlstate 'TM003' using message = 'not mine';", 'not mine' ],
        'empty' => [ "raise exception using message = '';", '' ],
        'long' => [ "raise exception '%', repeat('x', 100000);", 'x' x 100000 ],
        'of recursion' => [ 'execute \'select public.of_recursion($1)\' using t;', 'stack depth limit exceeded' ],
        'assertion' => [ "assert false, 'asserted';", 'asserted' ],
        'of a client\'s cancel' => [ 'perform pg_cancel_backend(pg_backend_pid()); perform pg_sleep(60);',
            'canceling statement due to user request', run_as => 'postgres' ]);
    for my $what (sort keys %raised) {
        my ($statement, $error, %settings) = @{ $raised{$what} };
        (my $lane = $what) =~ s/\W/_/g;
        $server->add_handler($lane, "$statement return null;", retry_delay => '1 h', %settings);
        $server->sql("select plan('$lane', '0', '$lane')");
        $server->fate_ok($lane, "scheduled 1: $error", "its message: $what");
    }
};

subtest 'the waits of many that failed together differ' => sub {
    $server->add_handler('crowd', "raise exception 'no';", retry_delay => '100 s', retry_factor => 1);
    $server->sql("select plan('crowd ' || n, '0', 'crowd') from generate_series(1, 100) n");
    $server->await_ok("select count(*) from history where name like 'crowd %'", 'all fail', expected => '100');
    is($server->sql("select min(wait) between 99990 and 102500 and max(wait) between 107500 and 110000
        and count(distinct round(wait / 100)) > 40 from history where name like 'crowd %'"), 't',
        'over a tenth of the wait');
};

subtest 'settings of the server stand in for those that are left open' => sub {
    $server->sql("alter system set durable_timers.retry_delay = '20 s';
        alter system set durable_timers.retry_factor = 10;
        alter system set durable_timers.retry_ceiling = '100 s'; select pg_reload_conf()");
    my $shown = "current_setting('durable_timers.retry_delay') || current_setting('durable_timers.retry_ceiling')";
    $server->wait_until("select $shown", expected => '20s100s');
    $server->add_handler('left_open', "raise exception 'no';");
    # The first attempt of a worker that may have been told; the second from what was scheduled at 20 s.
    $server->sql("select plan('left open', '0', 'left_open')");
    $server->fate_ok('left open', 'scheduled 1: no', 'it fails');
    $server->sql("update timers.timer set fire_at = clock_timestamp() where correlation_id = 'left open'");
    $server->fate_ok('left open', 'scheduled 2: no', 'and again');
    is($server->sql("select string_agg(round(wait / 20000)::text, ' ' order by position) from history
        where name = 'left open' and last_error is not null and wait > 1000"), '1 5', 'after 20 s, then 100 s');
    $server->sql("alter system reset durable_timers.retry_delay; alter system reset durable_timers.retry_factor;
        alter system reset durable_timers.retry_ceiling; select pg_reload_conf()");
    $server->wait_until("select $shown", expected => '1s1h');
};

subtest 'no attempt is one too many to reckon with' => sub {
    for my $factor (1, 2, 3, 1000) {
        my $lane = "worn_$factor";
        $server->add_handler($lane, "raise exception 'no';", retry_delay => $factor > 1 ? '1 s' : '1 h',
            retry_factor => $factor, retry_ceiling => '1 h');
        $server->sql("select plan('$lane', '1 h', '$lane');
            update timers.timer set attempts = 2000000000, fire_at = clock_timestamp() where correlation_id = '$lane'");
        $server->fate_ok($lane, 'scheduled 2000000001: no', "it is tried again, with factor $factor");
        is($server->sql("select count(*) from history where name = '$lane' and last_error = 'no'
            and wait between 3599900 and 3960000"), '1', 'after the ceiling');
    }
};

subtest 'dead timers that are tried again' => sub {
    $server->add_handler('revived', "raise exception 'no';", max_attempts => 3, retry_delay => '100 ms',
        retry_factor => 4);
    $server->sql("select plan('revived', '0', 'revived')");
    $server->fate_ok('revived', 'dead 3: timer exceeded attempt ceiling of 3', 'it dies');
    $server->sql("select timers.retry_dead(id('revived'))");
    $server->fate_ok('revived', 'dead 6: timer exceeded attempt ceiling of 3', 'it has as many attempts once more');
    is($server->sql("select string_agg(round(wait / 105)::text, ' ' order by position) from history
        where name = 'revived' and status = 'scheduled' and last_error = 'no'"), '1 4 1 4',
        'with the waits of the first');
};

subtest 'a ceiling of zero' => sub {
    $server->add_handler('never', 'call public.took_effect(t); return gen_random_uuid();', max_attempts => 0);
    $server->sql("select plan('never', '0', 'never')");
    $server->fate_ok('never', 'dead 1: timer exceeded attempt ceiling of 0', 'the timer dies at once');
    is($server->sql("select effects('never')"), '', 'the handler was not called');
};

subtest 'effects and completion are one' => sub {
    $server->add_handler('one', 'call public.took_effect(t); return gen_random_uuid();');
    $server->sql("select plan('one', '0', 'one')");
    $server->fate_ok('one', 'fired 1', 'the timer is completed');
    is($server->sql("select t.xmin = e.xmin from timers.timer t, effect e where correlation_id = 'one'
        and name = 'one'"),
        't', 'in the transaction of the effect');
    # The completion itself fails.
    $server->sql("create function no_completion() returns trigger language plpgsql as
        \$\$ begin
            if new.correlation_id = 'refused' then raise exception 'completion refused'; end if;
            return new;
        end \$\$;
        create trigger zz_no_completion before update on timers.timer for each row when (new.status = 'fired')
        execute function no_completion();
        select timers.configure('one', retry_delay => '1 h'), plan('refused', '0', 'one')");
    $server->fate_ok('refused', 'scheduled 1: completion refused', 'a completion that is refused is a failure');
    is($server->sql("select effects('refused')"), '', 'and undoes the effect');
};

subtest 'one failure stops nobody' => sub {
    $server->add_handler('mixed', "if t.payload ? 'bad' then raise exception 'bad'; end if; call public.took_effect(t);
        return gen_random_uuid();", max_concurrent => 1, retry_delay => '1 h');
    $server->sql("select timers.pause('mixed');
        select timers.schedule(id('mixed ' || n), 'mixed', 'mixed ' || n, now() + n * interval '1 ms',
            case when n % 3 = 1 then '{\"bad\": true}' else '{}' end::jsonb) from generate_series(1, 30) n;
        select timers.unpause('mixed')");
    $server->await_ok("select count(*) filter (where status = 'fired') || ' '
            || count(*) filter (where last_error = 'bad')
        from timers.timer where process_manager = 'mixed'", 'the good are handled beside the bad', expected => '20 10');
    is($server->sql("select string_agg(split_part(name, ' ', 2), ' ' order by position) from effect
        where name like 'mixed%'"),
        join(' ', grep { $_ % 3 != 1 } 1 .. 30), 'in order');
};

subtest 'a claim that fails' => sub {
    my $good = 'call public.took_effect(t); return gen_random_uuid();';
    $server->add_handler($_, $good) for qw(barred open);
    $server->sql(q{create function bar() returns trigger language plpgsql as
            $$ begin raise exception 'barred'; end $$;
        create trigger bar before update on timers.timer for each row
            when (new.process_manager = 'barred' and new.status = 'firing') execute function bar()});
    my $log = -s $server->logfile;
    my $failed = qr/WARNING:  durable_timers: could not claim timers of process manager "barred": barred/;
    my $failures = sub { my @all = slurp_file($server->logfile, $log) =~ /$failed/g; return scalar @all };
    $server->sql("select plan('barred', '0', 'barred'), plan('open 1', '0', 'open')");
    ok($server->wait_for_log($failed, $log), 'is in the log');
    $server->fate_ok('open 1', 'fired 1', 'other lanes go on');
    # What is scheduled meanwhile calls the lane, which rests all the same: a second at first, then twice that.
    my $begin = time();
    my $before = $failures->();
    $server->sql("select plan('barred $_', '0', 'barred')") for 1 .. 50;
    $server->sql("select plan('open 2', '0', 'open')");
    $server->fate_ok('open 2', 'fired 1', 'also then');
    cmp_ok($failures->() - $before, '<=', time() + 1 - $begin, 'its lane is tried again in a while');
    unlike(slurp_file($server->logfile, $log), qr/durable_timers handler" .* exited with exit code 1/,
        'no worker ends of it');
    is($server->sql("select fate('barred')"), 'scheduled 0', 'the attempt does not count');
    $server->sql('drop trigger bar on timers.timer');
    $server->fate_ok('barred', 'fired 1', 'and handled when it can be');
    $server->fate_ok('barred 50', 'fired 1', 'with all that follow');
};

subtest 'null' => sub {
    $server->add_handler('pending', 'call public.took_effect(t); return null;', max_attempts => 2, lease => '2 s');
    $server->sql("select plan('pending', '0', 'pending')");
    $server->await_ok("select effects('pending')", 'the handler is called', expected => 'pending 1');
    $server->await_ok("select status = 'firing' and kind = 'handler' and attempt = 1
        and lease_until between clock_timestamp() and clock_timestamp() + interval '2 s'
        from timers.timer join timers.claim using (timer_id) where correlation_id = 'pending'",
        'the timer stays claimed for the lease');
    $server->fate_ok('pending', 'dead 3: timer exceeded attempt ceiling of 2', 'then it is tried again, and dies');
    is($server->sql("select effects('pending')"), 'pending 1, pending 2', 'the effects of both attempts stand');
    is($server->sql("select max(started_at) - min(started_at) >= '2 s' from effect where name = 'pending'"), 't',
        'a lease lies between them');
    $server->add_handler('answered', 'return null;', lease => '1 h');
    $server->sql("select plan('answered', '0', 'answered')");
    $server->fate_ok('answered', 'firing 1', 'another is left to somebody else');
    is($server->sql("select timers.mark_fired(id('answered'), gen_random_uuid())"), 't', 'who completes it');
};

ok(slurp_file($server->logfile) !~ /exited with exit code|terminated by signal/, 'no worker failed in all this');

done_testing();

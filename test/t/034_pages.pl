# Pages cost the same however many timers there are, and show what is there while everything around it changes.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use IPC::Run;
use JSON::PP qw(decode_json);
use PostgreSQL::Test::Utils qw(append_to_file);
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0);

# A history of timers that have fired, as many ahead of the clock, a twentieth of them cancelled, a tenth dead, and a
# few that are firing. Every lane has its part of each.
sub filled {
    my ($database, $timers) = @_;
    $server->new_database($database);
    $server->sql("
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
        select id('past ' || n), 'lane ' || n % 4, 'saga ' || n / 20, clock_timestamp()
        from generate_series(1, $timers) n", $database);
    $server->wait_until("select count(*) from timers.timer where status = 'fired'", database => $database,
        expected => $timers);
    $server->sql("
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
        select id('ahead ' || n), 'lane ' || n % 4, 'saga ' || n / 20, now() + interval '1 day' + n * interval '1 s'
        from generate_series(1, $timers) n;
        select timers.cancel(id('ahead ' || n)) from generate_series(7, $timers, 20) n;
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, died_at, last_error)
        select id('dead ' || n), 'lane ' || n % 4, 'saga ' || n / 2, '2020-01-01', 'dead', now() - n * interval '1 s',
               (array['broken', 'broken pipe', 'lost', null, 'lost'])[1 + n % 5]
        from generate_series(1, $timers / 10) n;
        select timers.configure('held', delivery => 'external');
        select plan('held ' || n, '0', 'held') from generate_series(1, 20) n;
        select timers.claim_due('held', 20)", $database);
    $server->sql('vacuum analyze', $database);
    $server->wait_for_sleep($database);
    return $database;
}

# How many pages of memory and disk a query touches once its session knows it.
sub buffers {
    my ($database, $query) = @_;
    my $explain = "explain (analyze, buffers, format json) $query";
    my $plan = decode_json($server->sql("$explain \\g /dev/null\n$explain", $database))->[0]{Plan};
    $plan->{'Temp Written Blocks'} == 0 or die "$query writes something aside";
    return $plan->{'Shared Hit Blocks'} + $plan->{'Shared Read Blocks'};
}

# The cursor in the middle of all that a function shows.
sub middle {
    my ($database, $function) = @_;
    return $server->sql("
        with recursive page (cursor, number) as (
            select null::text, 0
            union all
            select (select f.cursor from timers.$function(page_size => 100, cursor => p.cursor) with ordinality f
                    order by f.ordinality desc limit 1), p.number + 1
            from page p where p.number = 0 or p.cursor is not null)
        select cursor from page where cursor is not null order by number
        limit 1 offset (select (count(*) - 1) / 2 from page where cursor is not null)", $database);
}

subtest 'what a page costs' => sub {
    my ($small, $large) = (filled('small', 5000), filled('large', 50_000));
    my %behind;
    for my $database ($small, $large) {
        $behind{$database}{$_} = middle($database, $_) for 'find_pending', 'find_dead';
    }
    for my $call (
        'find_pending()',
        q{find_pending(cursor => $behind)},
        q{find_pending('lane 2')},
        q{find_pending('lane 2', status => 'scheduled')},
        q{find_pending(status => 'firing')},
        q{find_pending('held', status => 'firing')},
        q{find_pending(correlation_id => 'saga 7')},
        q{find_pending('lane 2', 'saga 7')},
        q{find_pending(due_before => now() + interval '1 day 2 minutes')},
        q{find_pending('lane 2', due_before => now())},
        'find_dead()',
        q{find_dead(cursor => $behind)},
        q{find_dead('lane 2')},
        q{find_dead(correlation_id => 'saga 7')},
        q{find_dead('lane 2', 'saga 7')},
        q{find_dead(reason => 'broken')},
        q{find_dead(reason => 'bro', reason_match => 'prefix')},
        q{find_dead('lane 2', reason => 'pipe', reason_match => 'contains', page_size => 20)},
        q{find_dead(reason_match => 'none')},
        q{find_dead(died_after => now() - interval '5 minutes')},
        q{find_dead(died_before => now() - interval '5 minutes')},
        'pending_page()',
        'dead_page()',
        q{inspect(id('ahead 500'))}) {
        my ($function) = $call =~ /^(\w+)/;
        my %cost;
        for my $database ($small, $large) {
            my $behind = $behind{$database}{$function} // '';
            $cost{$database} = buffers($database, 'select * from timers.' . $call =~ s/\$behind/'$behind'/r);
        }
        # A tree of ten times as much is one step deeper.
        cmp_ok($cost{$large}, '<=', 1.5 * $cost{$small} + 20, "$call: $cost{$small} here, $cost{$large} there");
    }
};

# A walk page by page, each as new as it can be; what it met goes into a table.
my $walk = q{
create table met (walk text, id uuid, place integer);
create function walk(name text, call text) returns bigint language plpgsql as $$
declare
    ids uuid[];
    behind text;
    count integer := 0;
begin
    loop
        execute format('select array_agg(f.timer_id), (array_agg(f.cursor))[count(*)]
                        from timers.%s(page_size => 83, cursor => $1) f', call) into ids, behind using behind;
        exit when ids is null;
        insert into met select name, m.id, count + m.place from unnest(ids) with ordinality m (id, place);
        count := count + cardinality(ids);
    end loop;
    return count;
end $$;
};

# What goes on beside: each call does something to a timer that is not one of those which stay.
my $beside = q{
\set n random(1, 2000)
\set m random(1, 2000)
\set what random(1, 14)
select beside(:what, :n, :m);
};
my $beside_function = q{
create function beside(what integer, n integer, m integer) returns void language plpgsql as $$
declare
    which uuid := id('moving ' || n);
    lane text := 'lane ' || m % 3;
    token uuid;
begin
    case what
        when 1, 2 then perform timers.schedule_in(which, lane, 'c', '1 day' + m * interval '1 s');
        when 3 then perform timers.schedule_in(which, lane, 'c', m * interval '1 ms');
        when 4 then perform timers.schedule_in(which, lane, 'c', '2 days', mode => 'later');
        when 5 then perform timers.cancel(which);
        when 6, 7 then delete from timers.timer where timer_id = which and status in ('fired', 'cancelled');
        when 8, 9 then perform timers.dead_letter(which, 'broken');
        when 10 then perform timers.retry_dead(which, now() + interval '1 day');
        when 11 then perform timers.claim_due('held', 1, '1 day', '2099-01-01 00:00+00');
        when 12, 13 then
            select claim_token into token from timers.claim_dead(which, '1 minute');
            if m % 3 = 0 then
                perform timers.park_resume(which, token);
            elsif m % 3 = 1 then
                perform timers.cancel_resume(which, token);
            end if;
        when 14 then perform timers.debounce(which, lane, 'c', '1 day');
    end case;
exception when sqlstate 'TM001' or sqlstate 'TM002' or sqlstate 'TM004' then
    return;
end $$;
};

subtest 'a walk while everything changes' => sub {
    my $database = $server->new_database('walked');
    $server->sql($walk . $beside_function . q{
        -- What stays: scheduled, with ties in time; firing sooner or later; dead, with ties, too.
        select timers.configure('held', delivery => 'external');
        create table stays as
        select id('scheduled ' || n) as id, 'find_pending' as call from generate_series(1, 3000) n
        union all select id('held ' || n), 'find_pending' from generate_series(1, 500) n
        union all select id('dead ' || n), 'find_dead' from generate_series(1, 1500) n;
        select timers.schedule_in(id('scheduled ' || n), 'lane ' || n % 3, 'c', '1 day' + n % 700 * interval '3 s')
        from generate_series(1, 3000) n;
        select timers.schedule_in(id('held ' || n), 'held', 'c', '1 day' + n % 100 * interval '1 s')
        from generate_series(1, 500) n;
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, died_at, last_error)
        select id('dead ' || n), 'lane ' || n % 3, 'c', '2020-01-01', 'dead', now() + n % 300 * interval '30 ms', 'lost'
        from generate_series(1, 1500) n;
        select timers.schedule_in(id('moving ' || n), 'lane ' || n % 3, 'c', '1 day' + n * interval '1 s')
        from generate_series(1, 2000) n}, $database);
    my $script = $server->basedir . '/beside.sql';
    append_to_file($script, $beside);
    my @command = ('pgbench', '-n', '-M', 'prepared', '-c', '4', '-j', '2', '-T', '12', '-f', $script);
    my $load = IPC::Run::start([ @command, $server->connstr($database) ],
        '<', \undef, '>', \my $out, '2>', \my $error);
    my $until = time + 10;
    my $walks = 0;
    while (time < $until) {
        $walks++;
        $server->sql("select walk('$_ $walks', '$_')", $database) for 'find_pending', 'find_dead';
        # One that sees all of it at one moment sees just what is there at that moment.
        $server->sql("begin isolation level repeatable read;
            select walk('still $walks', 'find_pending');
            insert into met
            select 'there $walks', timer_id, row_number() over (order by process_manager, wake_at, timer_id)
            from timers.timer where status = any (timers.pending_statuses());
            commit", $database);
    }
    ok($load->finish, 'there was a lot going on') or diag($out, $error);
    my ($changes) = $out =~ /^number of transactions actually processed: (\d+)/m;
    note("$walks walks, $changes changes");
    cmp_ok($changes, '>', 1000, 'beside the walks');
    for my $call ('find_pending', 'find_dead') {
        is($server->sql("select count(*) from generate_series(1, $walks) w cross join stays s
            left join (select walk, id, count(*) as times from met group by walk, id) m
                on m.walk = '$call ' || w and m.id = s.id
            where s.call = '$call' and coalesce(m.times, 0) <> 1", $database), '0',
            "$call meets each timer that stays once");
    }
    is($server->sql("select count(*) from (
            select split_part(walk, ' ', 2), id, place from met where walk like 'still %'
            except select split_part(walk, ' ', 2), id, place from met where walk like 'there %') d", $database), '0',
        'under one snapshot, what is there, in its order');
    is($server->sql("select count(*) filter (where walk like 'still %') - count(*) filter (where walk like 'there %')
        from met", $database), '0', 'and all of it');
};

done_testing();

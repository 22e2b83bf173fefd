# Bulk calls over the same few timers in any order, beside single calls, passes and deletions: none deadlocks, none
# fails, and every request has its outcome.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use TimerServer;
use PostgreSQL::Test::Utils;
use Test::More;

my $server = TimerServer->start_new('main', conf => 'fsync = off');

$server->sql(q{
create function public.batch(size integer) returns timers.timer_request[] language sql volatile as $$
    select array_agg((public.id('timer ' || floor(random() * 40)), 'bulk', 'saga',
        timestamptz '2090-01-01' + random() * interval '1 day', '{}')::timers.timer_request)
    from generate_series(1, size) $$;
create function public.insert_both(direction integer) returns bigint language sql volatile as $$
    select count(m.outcome) from timers.schedule_many(array(
        select (public.id('new ' || floor(extract(epoch from clock_timestamp()) * 20) || ' ' || n), 'bulk', 'saga',
            '2090-01-01', '{}')::timers.timer_request
        from generate_series(1, 200) n order by n * direction)) m $$;
-- Fails unless every request has an outcome.
create function public.schedule_batch(size integer, mode timers.rearm_mode) returns boolean language sql volatile as $$
    select 1 / (count(m.outcome) = size)::integer = 1 from timers.schedule_many(public.batch(size), mode) m $$;
});

# Runs pgbench with scripts and how often each comes beside the others: nothing fails, nothing deadlocks.
my $folder = PostgreSQL::Test::Utils::tempdir;

sub contend {
    my ($name, $clients, $transactions, %scripts) = @_;
    my @files;
    for my $script (sort keys %scripts) {
        my ($weight, $commands) = @{ $scripts{$script} };
        append_to_file("$folder/$script", "$commands\n");
        push @files, '--file', "$folder/$script\@$weight";
    }
    my $all = $clients * $transactions;
    command_checks_all(
        [qw(pgbench --no-vacuum --jobs=2 --protocol=prepared), "--client=$clients", "--transactions=$transactions",
            @files, $server->connstr('postgres')],
        0, [ qr{actually processed: $all/$all}, qr/number of failed transactions: 0 / ], [qr/^(?!.*ERROR)/s], $name);
    is($server->sql("select deadlocks from pg_stat_database where datname = 'postgres'"), '0', "$name: no deadlock");
    return;
}

contend('everything at once', 6, 300,
    batch => [8, q{
        \set size random(1, 30)
        \set mode random(1, 8)
        \if :mode > 3
            \set mode 1
        \endif
        select public.schedule_batch(:size, (enum_range(null::timers.rearm_mode))[:mode]);}],
    keep => [1, q{
        \set size random(1, 30)
        select public.schedule_batch(:size, 'keep');}],
    single => [3, q{
        \set number random(0, 39)
        select timers.debounce(public.id('timer ' || :number), 'bulk', 'saga', '100 years');}],
    undone => [1, q{
        \set size random(1, 30)
        begin;
        select public.schedule_batch(:size, 'replace');
        rollback;}],
    cancel => [1, q{
        \set number random(0, 39)
        select timers.cancel(public.id('timer ' || :number));}],
    pass => [1, q{select timers.fire_due('2090-01-01 12:00+00', 5);}],
    # Frees ids, so that they are new again; those of scheduled timers, too.
    delete => [6, q{
        \set number random(0, 39)
        delete from timers.timer where timer_id = public.id('timer ' || :number);}],
);
cmp_ok($server->sql('select count(*) from timers.timer'), '<=', 40, 'each timer is there once');

# All at the same moment, the same new timers, up or down.
contend('new ones from both ends', 4, 60,
    insert => [1, q{
        \set direction random(0, 1) * 2 - 1
        select pg_sleep(0.05 - extract(epoch from clock_timestamp()) % 0.05);
        select public.insert_both(:direction);}]);

$server->stop;
done_testing();

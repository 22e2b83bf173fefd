# Recurring work is a line of pg_cron: beside the workers it schedules timers, and where they are switched off it fires
# them and keeps the tables small, too.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Document;
use TimerServer;
use Test::More;

# Starts a server with pg_cron and these libraries besides.
sub start_with_cron {
    my ($name, @libraries) = @_;
    my $libraries = join ', ', 'pg_cron', @libraries;
    my $server = TimerServer->start_new($name, preload => 0, conf => "shared_preload_libraries = '$libraries'
        cron.database_name = 'postgres'
        cron.timezone = 'UTC'
        cron.use_background_workers = on");
    $server->sql('create extension pg_cron');
    return $server;
}

# The lines of the document, with another schedule: every minute.
my ($hourly, $instead) = map { s/'[\d*]+ [\d*]+ \* \* \*'/'* * * * *'/gr } sql_blocks(
    section(document('docs/operations.md'), '## Recurring work'));

# Until the lines have run so often, each time without an error; pg_cron runs them on the minute.
sub lines_run_ok {
    my ($server, $times, @names) = @_;
    for my $name (@names) {
        $server->await_ok("select count(*) >= $times from cron.job_run_details d join cron.job using (jobid)
            where jobname = '$name' and d.status = 'succeeded'", "\"$name\" runs", seconds => 100);
    }
    is($server->sql("select count(*) from cron.job_run_details where status = 'failed'"), '0', 'without an error');
    return;
}

my $with_workers = start_with_cron('workers', 'durable_timers');
my $without = start_with_cron('alone');

# One timer a period, here a minute, however often the line runs in it.
for my $name ('first', 'second') {
    $with_workers->sql($hourly =~ s/'hourly report'/'$name'/r =~ s/'hour'/'minute'/r);
}
$without->sql($instead);
$without->sql(q{
select plan('due', '0'), plan('due too', '0', 'other'), plan('later', '1 hour'), plan('old', '0', 'old');
select timers.configure('own', delivery => 'external');
select plan('own', '0', 'own');
select timers.configure('asked', delivery => 'notify', channel => 'asked', lease => '1 s'), plan('asked', '0', 'asked');
});

subtest 'where the workers are switched off' => sub {
    is($without->sql('select state from timers.workers'), 'not preloaded', 'nothing fires by itself');
    lines_run_ok($without, 1, 'fire timers', 'forget timers');
    is($without->delivered, 'due due too old', 'pg_cron fires what is due');
    is($without->sql("select status('own'), status('later'), status('asked')"), 'scheduled|scheduled|firing',
        'as it is to be delivered');
    # As if a week had passed.
    $without->sql("update timers.timer set updated_at = now() - interval '8 days' where correlation_id in ('old', 'own')");
    lines_run_ok($without, 2, 'fire timers', 'forget timers');
    is($without->delivered, 'due due too old', 'nothing fires twice');
    $without->await_ok("select attempts > 1 from timers.timer where correlation_id = 'asked'",
        'what nobody acknowledges is sent again');
    $without->await_ok("select count(*) from timers.timer where correlation_id = 'old'", 'what fired a week ago goes',
        expected => '0');
    is($without->sql("select status('own'), status('due')"), 'scheduled|fired', 'and nothing else');
};

subtest 'beside the workers' => sub {
    lines_run_ok($with_workers, 2, 'first', 'second');
    $with_workers->await_ok("select count(*) >= 2 from timers.outbox where process_manager = 'reports'",
        'what they schedule fires by itself');
    is($with_workers->sql("select count(*) - count(distinct date_trunc('minute', fire_at)) from timers.outbox"), '0',
        'once a minute');
    is($with_workers->sql("select count(*) from timers.outbox where fired_at < fire_at"), '0', 'and not too early');
};

done_testing();

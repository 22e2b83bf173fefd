# The file for psql loads from where it is installed, and each of its variables shows what its heading says.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use PostgreSQL::Test::Utils qw(slurp_file);
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main');
my ($folder) = split /\n/, qx(pg_config --sharedir);
my $file = "$folder/extension/durable_timers.psql";
is(slurp_file($file), slurp_file("$FindBin::RealBin/../../psql/durable_timers.psql"), 'it is installed');

$server->sql(q{
    select timers.configure('work', delivery => 'external'), timers.pause('held');
    select plan('fired', '0'), plan('next', '1 hour'), plan('after next', '2 hours', 'work');
    select plan('held', '-1 hour', 'held');
    select plan('dead', '1 hour', 'work'), timers.dead_letter(id('dead'), 'no use');
    select plan('stuck', '-1 day', 'work');
    select count(*) from timers.claim_due('work');
    update timers.claim set claimed_at = now() - interval '2 minutes';
    select plan('claimed', '-1 day', 'work');
    select count(*) from timers.claim_due('work')});
$server->delivered_ok('fired', 'one fires');
# The counts of its transaction are told a moment later.
$server->wait_until("select value from timers.metrics where name = 'timer.fired' and process_manager = 'orders'",
    expected => '1');

# What a variable shows, a line per row; columns that change from run to run left out.
sub shown {
    my ($variable, @columns) = @_;
    my ($status, $out, $error) = $server->psql('postgres', "\\set ON_ERROR_STOP 1\n\\i $file\n\\pset tuples_only off\n"
        . "\\pset format csv\n:$variable\n");
    is($error, '', ":$variable runs");
    my ($head, @lines) = split /\n/, $out =~ s/^(?:Tuples only|Output format).*\n//mgr;
    my @names = split /,/, $head;
    my %place = map { $names[$_] => $_ } 0 .. $#names;
    return join "\n", map { join ' ', (split /,/, $_, -1)[ @place{@columns} ] } @lines;
}

is(shown('overview', qw(process_manager scheduled due firing dead)), "held 1 1 0 0\norders 1 0 0 0\nwork 1 0 2 1",
    'a line for each process manager, those first that have something to do');
is(shown('workers', qw(worker state)), 'dispatcher running', 'the dispatcher');
is(shown('pending', qw(correlation_id paused)), "held t\nnext f\nafter next f", 'what fires next, in order');
is(shown('dead', qw(correlation_id last_error)), 'dead no use', 'what was given up on');
is(shown('stuck', qw(correlation_id attempts)), 'stuck 1', 'what has been firing for long');
is(shown('lag', qw(process_manager attempts)), "orders 1\nwork 2", 'the lag of what was attempted');
is(shown('events', qw(position correlation_id leased_until)), '1 fired ', 'what waits for a consumer');

my @explained = slurp_file($file) =~ /^--   :(\w+) /mg;
my @set = slurp_file($file) =~ /^\\set (\w+) '/mg;
is_deeply(\@explained, \@set, 'its heading names each variable');

# Like the views, those that read timers do so by their indexes.
my ($status, $plans) = $server->psql('postgres', "set enable_seqscan = off;\n\\i $file\n"
    . join '', map { "explain :$_\n" } qw(pending dead stuck));
unlike($plans, qr/Seq Scan on timer\b/, 'no query needs to read the whole table');
like($plans, qr/timer_due_idx.*timer_dead_idx/s, 'but indexes');

done_testing();

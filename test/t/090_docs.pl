# The documents tell what is there, all of it, and nothing else; their SQL runs and does what the text around it says.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Document;
use File::Basename qw(dirname);
use PostgreSQL::Test::Utils qw(slurp_file);
use TimerServer;
use Test::More;

my $root = "$FindBin::RealBin/../..";
my %document = map { $_ => document($_) }
    qw(README.md docs/reference.md docs/data.md docs/architecture.md docs/operations.md examples/kioku/README.md);
my $reference = $document{'docs/reference.md'} . $document{'docs/data.md'};
my $server = TimerServer->start_new('docs');

sub squeezed { return $_[0] =~ s/\s+/ /gr }

# What the first column of a section's tables names in backticks.
sub first_column { return map { /^\|([^|]*)\|/ ? $1 =~ /`([^`]+)`/g : () } split /\n/, $_[0] }

sub rows { return split /\n/, $server->sql($_[0]) }
sub sorted { return [ sort @_ ] }

subtest 'every public function has its signature, and nothing else has one' => sub {
    my %signature;
    for (rows(q{
        select format('timers.%s(%s) returns %s', proname, pg_get_function_arguments(oid), pg_get_function_result(oid))
        from pg_proc where pronamespace = 'timers'::regnamespace and proname not like '\_%'})) {
        s/::[a-z_.]+( with time zone| precision)?//g;
        s/timestamp with time zone/timestamptz/g;
        s/\b(DEFAULT|NULL|SETOF|OUT|SESSION_USER)\b/lc $1/ge;
        $signature{$_} = 1;
    }
    my %written = map { squeezed($_) =~ s/\( /(/r =~ s/ $//r => 1 }
        map { /^(timers\.\w+\(.*?\).*?returns [^\n]+)$/msg } $reference =~ /^```text\n(.*?)^```$/msg;
    ok(keys %signature > 10, 'the catalog has functions');
    ok($written{$_}, "$_ is in the reference") for sort keys %signature;
    ok($signature{$_}, "$_ is in the catalog") for sort keys %written;
};

subtest 'every type, table and view has its section, with every label and column' => sub {
    my %member;
    push @{ $member{"timers.$_->[0]"} }, $_->[1] for map { [ split /\|/ ] } rows(q{
        select t.typname, e.enumlabel from pg_type t join pg_enum e on e.enumtypid = t.oid
        where t.typnamespace = 'timers'::regnamespace
        union all
        select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid
        where c.relnamespace = 'timers'::regnamespace and c.relkind in ('r', 'v', 'm', 'p', 'c')
          and c.relname not like '\_%' and a.attnum > 0 and not a.attisdropped});
    ok(keys %member > 8, 'the catalog has types, tables and views');
    for my $name (sort keys %member) {
        my $text = section($reference, "### $name");
        my @named = first_column($text);
        @named = $text =~ /`(\w+)`/g unless @named;
        my %is_member = map { $_ => 1 } @{ $member{$name} };
        my %is_named = map { $_ => 1 } @named;
        is_deeply(sorted(grep { !$is_named{$_} } keys %is_member), [], "nothing of $name is missing");
        next if $name eq 'timers.workers';    # its section has a table of states, too
        is_deeply(sorted(grep { !$is_member{$_} } keys %is_named), [], "nothing is made up about $name");
    }
    my ($states) = slurp_file("$root/src/engine/dispatcher_state.cpp") =~ /\bdispatcher_state\(.*?\{(.*?)^\}/ms;
    my @commented = split /; |\./, $server->sql(q{select col_description('timers.workers'::regclass, attnum)
        from pg_attribute where attrelid = 'timers.workers'::regclass and attname = 'state'});
    my %written = map { $_ => 1 } first_column(section($reference, '### timers.workers'));
    ok($written{$_}, "the state \"$_\" of a worker is in the reference") for @commented, $states =~ /"([^"]+)"/g;
};

subtest 'every metric, with its name for Prometheus' => sub {
    $server->sql("select timers.pause('a lane')");
    my %exposed = map { $_ => 1 } $server->sql('select timers.prometheus()') =~ /^# TYPE (\w+) /mg;
    # Without a safe mark the lane has no age of it.
    my %there = map { $_ => 1 } 'timer.safe_mark.age', rows(q{select distinct name from timers.metrics
        where not (type = 'histogram' and name ~ '\.(sum|count)$')});
    $exposed{durable_timers_safe_mark_age_seconds} = 1;
    my $text = section($document{'docs/data.md'}, '## Metrics');
    is_deeply(sorted(first_column($text)), sorted(keys %there), 'data.md has those of the view');
    is_deeply(sorted($text =~ /`(durable_timers_\w+)`/g), sorted(keys %exposed), 'and of prometheus()');
};

subtest 'everything public has a comment in the catalog' => sub {
    is_deeply([ rows(q{
        select n from (
            select p.oid::regprocedure::text, obj_description(p.oid, 'pg_proc') from pg_proc p
            where p.pronamespace = 'timers'::regnamespace
            union all
            select t.oid::regtype::text, obj_description(t.oid, 'pg_type') from pg_type t
            where t.typnamespace = 'timers'::regnamespace and t.typtype in ('e', 'c') and t.typrelid = 0
            union all
            select c.oid::regclass::text,
                   coalesce(obj_description(c.oid, 'pg_class'), obj_description(c.reltype, 'pg_type'))
            from pg_class c where c.relnamespace = 'timers'::regnamespace and c.relkind in ('r', 'v', 'm', 'p', 'c')
        ) o (n, comment) where comment is null order by n}) ], [], 'nothing is without');
};

subtest 'every setting, with its default' => sub {
    my %default = map { split /\|/ } rows(q{
        select name, current_setting(name) from pg_settings
        where name like 'durable\_timers.%' and source = 'default'});
    my $text = section($reference, '## Server settings');
    my %row = map { /^\| `(durable_timers\.\w+)` \| `(.*?)` \|/ ? ($1 => $2) : () } split /\n/, $text;
    ok(keys %default > 2, 'the server has settings');
    is_deeply(\%row, \%default, 'the reference has the same');
};

subtest 'every SQLSTATE that the source raises' => sub {
    my $source = join '', map { slurp_file($_) } glob "$root/src/*/*.?pp";
    my ($folder) = split /\n/, qx(pg_config --includedir-server);
    my $codes = slurp_file("$folder/utils/errcodes.h");
    my %code = map { s/[', ]//gr => 1 } $source =~ /MAKE_SQLSTATE\(([^)]*)\)/g;
    for my $name ($source =~ /\b(?:raise|refuse|errcode)\(\s*(ERRCODE_\w+)/g) {
        my ($digits) = $codes =~ /#define $name MAKE_SQLSTATE\((.*?)\)/;
        ok($digits, "$name is a SQLSTATE of the server") or next;
        $code{ $digits =~ s/[', ]//gr } = 1;
    }
    my %written = map { $_ => 1 } first_column(section($reference, '## SQLSTATEs'));
    ok((grep { /^TM/ } keys %code) >= 3, 'the source has SQLSTATEs of its own');
    ok($written{$_}, "$_ is in the reference") for sort keys %code;
    ok($code{$_}, "$_ is in the source") for grep { /^TM/ } sort keys %written;
};

subtest 'what the documents name exists' => sub {
    my %there = map { $_ => 1 } rows(q{
        select proname from pg_proc where pronamespace = 'timers'::regnamespace
        union select relname from pg_class where relnamespace = 'timers'::regnamespace
        union select typname from pg_type where typnamespace = 'timers'::regnamespace});
    my %setting = map { $_ => 1 } rows(q{select name from pg_settings where name like 'durable\_timers.%'});
    for my $path (sort keys %document) {
        my $text = $document{$path};
        my @unknown = grep { !$there{$_} } $text =~ /(?<![\w.\/])timers\.(\w+)/g;
        is_deeply(\@unknown, [], "$path names no object that is missing");
        @unknown = grep { !$setting{$_} } $text =~ /(?<![\w.\/])(durable_timers\.(?!control|so\b)\w+)/g;
        is_deeply(\@unknown, [], "$path names no setting that is missing");
        @unknown = grep { !-e "$root/$_" } $text =~ /`((?:src|schema|scripts|docs|examples|bench|test)\/[\w.\/-]+)`/g;
        is_deeply(\@unknown, [], "$path names no file that is missing");
        for my $link (grep { !/^\w+:/ } $text =~ /\]\(([^)\s]+)\)/g) {
            my ($file, $anchor) = $link =~ /^([^#]*)#?(.*)$/;
            my $target = $file eq '' ? $text : -e "$root/" . dirname($path) . "/$file"
                ? slurp_file("$root/" . dirname($path) . "/$file") : '';
            my %anchors = map { lc s/[^\w -]//gr =~ s/ /-/gr => 1 } $target =~ /^#+ (.*)$/mg;
            ok($target ne '' && ($anchor eq '' || $anchors{$anchor}), "$path: the link $link leads somewhere");
        }
    }
};

subtest 'the source is layered as docs/architecture.md says' => sub {
    my %may;
    for (split /\n/, section($document{'docs/architecture.md'}, '## Layers')) {
        my ($folder, $included) = /^\| `src\/(\w+)` \|[^|]*\| (.*?) \|/ or next;
        $may{$folder} = { map { $_ => 1 } $folder, $included =~ /`(\w+)`/g };
    }
    is_deeply(sorted(keys %may), sorted(map { s/.*\///r } grep { -d } glob "$root/src/*"), 'every folder has its row');
    for my $file (glob "$root/src/*/*.?pp") {
        my ($folder, $name) = $file =~ m{/(\w+)/([\w.]+)$};
        my @included = slurp_file($file) =~ /#include "(.*?)"/g;
        my @wrong = grep { m{^(\w+)/\w+\.hpp$} ? !$may{$folder}{$1} : $folder eq 'core' } @included;
        is_deeply(\@wrong, [], "$folder/$name includes what it may");
        ok($file =~ m{/pg/server\.hpp$} || !(grep { $_ eq 'postgres.h' } @included), '... and not postgres.h');
    }
};

subtest 'the SQL of README.md' => sub {
    $server->sql('create database readme');
    my @blocks = sql_blocks($document{'README.md'});
    ok(@blocks > 4, 'there are blocks');
    my $said = $server->sql(join('', @blocks), 'readme');
    like($said, qr/^inserted\n.*^inserted\n.*^rearmed\n/ms, 'it schedules, and debounces');
    is($server->sql("select timers.fire_due(clock_timestamp() + interval '1 day')", 'readme'), '2', 'two timers fire');
    my @events = $server->sql($blocks[-1], 'readme') =~ /\|(order 4711|session 17)\|.*\|(\{.*\})$/mg;
    is_deeply(\@events, [ 'session 17', '{"turn": 2}', 'order 4711', '{"order": 4711}' ],
        'the consumer gets each once, the last payload of the debounced one');
    is($server->sql("set role app; select count(*) from timers.take_events()", 'readme'), '0', 'app may take events');
    like($server->sql_error("set role app; table timers.claim", 'readme'), qr/^42501/, 'app may not read tokens');
};

subtest 'the SQL of docs/operations.md' => sub {
    $server->sql('create database operations');
    # The rest needs more than this server; the tests of consumers and of pg_cron run it.
    my $text = $document{'docs/operations.md'};
    $text =~ s/\Q${\ section($text, $_)}\E// for '## Recurring work', '## Events in another system';
    my ($install, @blocks) = sql_blocks($text);
    $server->sql($install, 'operations');
    $server->sql(q{
        select timers.pause('late');
        select timers.schedule_in(gen_random_uuid(), 'late', n::text, '-1 minute') from generate_series(1, 2) n;
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, updated_at)
        select gen_random_uuid(), 'done', age, now(), status::timers.timer_status, now() - age::interval
        from (values ('8 days'), ('6 days')) a (age),
             (values ('fired'), ('cancelled'), ('dead')) s (status);
        select timers.schedule_in(i, 'unpaid', 'order 4710', '1 day'), timers.dead_letter(i, 'the bank is closed')
        from gen_random_uuid() i}, 'operations');
    my ($overview) = grep { /from timers\.overview/ } @blocks;
    my @making = grep { /^create /m } @blocks;
    is(@making, 2, 'there are roles, and a handler');
    $server->sql(join('', @making), 'operations');
    $server->sql("set role timers_operator; $_", 'operations') for grep { !/^create /m } @blocks;
    is($server->sql("select string_agg(status || ' ' || correlation_id, ', ' order by status, correlation_id)
        from timers.timer where process_manager = 'done'", 'operations'),
        'fired 6 days, cancelled 6 days, dead 6 days', 'finished timers are deleted when they are old');
    is($server->sql("select status, fired_event_id is not null from timers.timer where correlation_id = 'order 4710'",
        'operations'), 'fired|t', 'a dead timer is resumed');
    like($server->sql("set role timers_operator; $overview", 'operations'), qr/^late\|2\|2\|.*paused/m,
        'an operator sees what is overdue, and why');
    $server->sql(q{select timers.schedule_in(gen_random_uuid(), 'unpaid', 'order 4711', '0', '{"order": 4711}')},
        'operations');
    $server->await_ok(q{select count(*) from timers.timer where correlation_id = 'order 4711' and status = 'fired'},
        'the timer with a handler fires', database => 'operations', expected => '1');
    is($server->sql('select order_number from billing.reminder', 'operations'), '4711', 'its handler has run');
};

done_testing();

# Each role of docs/operations.md can do its own and nothing else, function by function and relation by relation.
# Whatever is added to the schema needs a decision here.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Document;
use TimerServer;
use Test::More;

my $server = TimerServer->start_new('main', extension => 0);
$server->sql('create extension durable_timers');

my $privileges = section(document('docs/operations.md'), '## Privileges');
$server->sql($_) for sql_blocks($privileges);

my $request = q{array[('00000000-0000-4000-8000-000000000001', 'p', 'c', '2090-01-02', '{}')]::timers.timer_request[]};

# Who may call what, and how it is called. An operator may all that a reader may, and a reader all that a monitor may.
my %function = (
    timer_id => ['scheduler reader', q{timers.timer_id(gen_random_uuid(), 'n')}],
    schedule => ['scheduler', q{timers.schedule(gen_random_uuid(), 'p', 'c', now())}],
    schedule_in => ['scheduler', q{timers.schedule_in(gen_random_uuid(), 'p', 'c', '1 h')}],
    schedule_once => ['scheduler', q{timers.schedule_once(gen_random_uuid(), 'p', 'c', now())}],
    schedule_many => ['scheduler', qq{timers.schedule_many($request)}],
    debounce => ['scheduler', q{timers.debounce(gen_random_uuid(), 'p', 'c', '1 h')}],
    cancel => ['scheduler operator', q{timers.cancel(gen_random_uuid())}],
    cancel_correlation => ['scheduler operator', q{timers.cancel_correlation('p', 'c')}],
    claim_due => ['worker', q{timers.claim_due('p')}],
    renew => ['worker', q{timers.renew(gen_random_uuid(), gen_random_uuid())}],
    mark_fired => ['worker', q{timers.mark_fired(gen_random_uuid(), gen_random_uuid())}],
    release => ['worker', q{timers.release(gen_random_uuid(), gen_random_uuid())}],
    lookup => ['worker reader', q{timers.lookup(gen_random_uuid())}],
    take_events => ['consumer', q{timers.take_events()}],
    lease_events => ['consumer', q{timers.lease_events()}],
    ack_events => ['consumer', q{timers.ack_events('{1}')}],
    _overview => ['monitor', q{timers._overview()}],
    _workers => ['monitor', q{timers._workers()}],
    _metrics => ['monitor', q{timers._metrics()}],
    prometheus => ['monitor', q{timers.prometheus()}],
    count_due => ['monitor', q{timers.count_due()}],
    count_stuck => ['monitor', q{timers.count_stuck()}],
    find_stuck => ['reader', q{timers.find_stuck()}],
    inspect => ['reader', q{timers.inspect(gen_random_uuid())}],
    find_pending => ['reader', q{timers.find_pending()}],
    find_dead => ['reader', q{timers.find_dead()}],
    pending_page => ['reader', q{timers.pending_page()}],
    dead_page => ['reader', q{timers.dead_page()}],
    pending_statuses => ['reader', q{timers.pending_statuses()}],
    configure => ['operator', q{timers.configure('p', max_attempts => 3)}],
    pause => ['operator', q{timers.pause('p')}],
    unpause => ['operator', q{timers.unpause('p')}],
    arm => ['operator', q{timers.arm()}],
    requeue => ['operator', q{timers.requeue(gen_random_uuid())}],
    requeue_stuck => ['operator', q{timers.requeue_stuck()}],
    dead_letter => ['operator', q{timers.dead_letter(gen_random_uuid(), 'x')}],
    retry_dead => ['operator', q{timers.retry_dead(gen_random_uuid())}],
    purge => ['operator', q{timers.purge(now())}],
    fire_due => ['operator', q{timers.fire_due()}],
    claim_dead => ['operator', q{timers.claim_dead(gen_random_uuid())}],
    renew_resume => ['operator', q{timers.renew_resume(gen_random_uuid(), gen_random_uuid(), '1 min')}],
    complete_resume => ['operator', q{timers.complete_resume(gen_random_uuid(), gen_random_uuid(), gen_random_uuid())}],
    park_resume => ['operator', q{timers.park_resume(gen_random_uuid(), gen_random_uuid())}],
    cancel_resume => ['operator', q{timers.cancel_resume(gen_random_uuid(), gen_random_uuid())}],
    recover_expired_resumes => ['operator', q{timers.recover_expired_resumes()}],
    # Nobody's: called by the extension itself.
    _event_id => ['', q{timers._event_id(gen_random_uuid(), now())}],
    _identity => ['', q{timers._identity()}],
    _inspection_json => ['', q{timers._inspection_json(null, now())}],
    _on_timer => [''],
    _on_claim => [''],
    _on_settings => [''],
);

# Who may read what. Nobody may write.
my %relation = (
    timer => 'reader',
    outbox => 'reader',
    process_manager => 'reader',
    safe_mark => 'reader',
    overview => 'monitor',
    workers => 'monitor',
    metrics => 'monitor',
    claim => '',
    armed => '',
    outbox_position_seq => '',
);

my $relkinds = q{('r', 'p', 'v', 'm', 'f', 'S')};
my %more = (reader => ['monitor'], operator => [ 'reader', 'monitor' ]);
my @roles = qw(scheduler worker consumer monitor reader operator);

# Whether a role is one of those who may.
sub may {
    my ($role, $who) = @_;
    my %who = map { $_ => 1 } split / /, $who;
    return grep({ $who{$_} } $role, @{ $more{$role} || [] }) ? 1 : 0;
}

sub sorted { return [ sort @_ ] }
sub rows { return split /\n/, $server->sql($_[0]) }

subtest 'everything has its decision' => sub {
    is_deeply(sorted(keys %function), sorted(rows(q{
        select distinct proname from pg_proc where pronamespace = 'timers'::regnamespace})), 'functions');
    is_deeply(sorted(keys %relation), sorted(rows(q{
        select relname from pg_class where relnamespace = 'timers'::regnamespace and relkind in } . $relkinds)),
        'relations');
    is_deeply(sorted(map { "timers_$_" } @roles),
        sorted(rows(q{select rolname from pg_roles where rolname ~ '^timers_'})), 'roles');
};

$server->sql('create role timers_nobody; grant usage on schema timers to timers_nobody');

for my $role (@roles, 'nobody') {
    subtest "$role: what it may by the catalog" => sub {
        my %granted = map { /^(\w+)\|(.)$/ } rows("
            select proname, bool_and(has_function_privilege('timers_$role', oid, 'execute'))
            from pg_proc where pronamespace = 'timers'::regnamespace group by proname");
        my %expected = map { $_ => may($role, $function{$_}[0]) ? 't' : 'f' } keys %function;
        is_deeply(\%granted, \%expected, 'functions');
        my %allowed = map { /^(\w+)\|(.*)$/ } rows("
            select c.relname, coalesce(string_agg(p.privilege, ' ' order by p.privilege)
                filter (where has_table_privilege('timers_$role', c.oid, p.privilege)), '')
            from pg_class c, unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger'])
                as p (privilege)
            where c.relnamespace = 'timers'::regnamespace and c.relkind in $relkinds group by c.relname");
        %expected = map { $_ => may($role, $relation{$_}) ? 'select' : '' } keys %relation;
        is_deeply(\%allowed, \%expected, 'relations');
        is($server->sql("select string_agg(a.attrelid::regclass || '.' || a.attname, ' ')
            from pg_attribute a join pg_class c on c.oid = a.attrelid
            where c.relnamespace = 'timers'::regnamespace and a.attacl is not null"), '', 'no column by itself');
        is($server->sql("select has_schema_privilege('timers_$role', 'timers', 'create')
            or has_sequence_privilege('timers_$role', 'timers.outbox_position_seq', 'usage')"), 'f', 'nor else');
    };

    # What is allowed works with that alone; what is not is refused, before it does anything.
    subtest "$role: what comes of it" => sub {
        for my $name (sort grep { $function{$_}[1] } keys %function) {
            my $error = $server->sql_error(
                "begin; set local role timers_$role; select * from $function{$name}[1]; rollback");
            if (may($role, $function{$name}[0])) {
                like($error, qr/^(no error|TM001)/, "may call $name");
            } else {
                like($error, qr/^42501 permission denied for function $name/, "may not call $name");
            }
        }
        for my $name (sort keys %relation) {
            my $error = $server->sql_error("begin; set local role timers_$role; select * from timers.$name; rollback");
            if (may($role, $relation{$name})) {
                like($error, qr/^no error/, "may read $name");
            } else {
                like($error, qr/^42501 permission denied/, "may not read $name");
            }
        }
    };
}

subtest 'tokens' => sub {
    # Whatever shows one to its caller.
    my @showing = rows(q{
        select p.proname from pg_proc p
        where p.pronamespace = 'timers'::regnamespace
          and (exists (select from pg_type t join pg_attribute a on a.attrelid = t.typrelid
                       where t.oid = p.prorettype and a.attname ~ 'token')
               or exists (select from unnest(p.proargnames, p.proargmodes) a (name, mode)
                          where a.name ~ 'token' and a.mode in ('o', 't', 'b')))});
    is_deeply(sorted(@showing), [ 'claim_dead', 'claim_due' ], 'are shown to whoever claims');
    is($server->sql(q{select string_agg(attrelid::regclass::text, ' ' order by 1) from pg_attribute
        where attname ~ 'token' and attrelid in (select oid from pg_class where relnamespace = 'timers'::regnamespace
            and relkind in ('r', 'v'))}), 'timers.claim', 'and lie where nobody may read');
    $server->sql(q{select timers.configure('tokens', delivery => 'external');
        select timers.schedule_in(gen_random_uuid(), 'tokens', 'c', '0', '{"secret": true}');
        select count(*) from timers.claim_due('tokens')});
    my $token = $server->sql('select token from timers.claim');
    for my $role (@roles) {
        my @readable = grep { may($role, $relation{$_}) } sort keys %relation;
        my @callable = grep { may($role, $function{$_}[0]) } 
            qw(_metrics find_dead find_pending find_stuck inspect lookup pending_page prometheus);
        my @from = ((map { "timers.$_" } @readable),
            (map { $function{$_}[1] =~ s/gen_random_uuid\(\)/(select timer_id from public.claimed)/r } @callable));
        $server->sql('create or replace view public.claimed as select timer_id from timers.claim;
            grant select on public.claimed to public');
        my $seen = join "\n", map { $server->sql("set role timers_$role; select r from $_ r") } @from;
        ok(index($seen, $token) < 0, "$role sees none");
        is(($seen =~ /secret/ ? 1 : 0), may($role, 'reader worker'), '... and payloads if that is its task');
    }
};

subtest 'running code as somebody else' => sub {
    $server->sql(q{
        create role app; create role other;
        grant timers_operator, timers_scheduler to app;
        create schema app authorization app;
        create function app.own(t timers.timer) returns uuid language sql as 'select t.timer_id';
        alter function app.own owner to app;
        create function app.others(t timers.timer) returns uuid language sql as 'select t.timer_id';
        revoke execute on function app.others from public});
    my $as_app = 'set session authorization app;';
    my $configure = "select timers.configure('code', delivery => 'handler', handler =>";
    like($server->sql_error("$as_app $configure 'app.own', run_as => 'other')"), qr/^42501 .*"other"/,
        'not as a role that one does not belong to');
    like($server->sql_error("$as_app $configure 'app.own', run_as => 'postgres')"), qr/^42501 .*"postgres"/,
        'least of all as a superuser');
    like($server->sql_error("$as_app $configure 'app.others')"), qr/^42501 .*app\.others/,
        'no function that one may not execute');
    is($server->sql('select count(*) from timers.process_manager where process_manager = \'code\''), '0',
        'nothing has been configured');
    $server->sql("$as_app $configure 'app.own')");
    is($server->sql("select run_as from timers.process_manager where process_manager = 'code'"), 'app', 'as oneself');
    $server->sql("grant other to app; $as_app select timers.configure('code', run_as => 'other')");
    is($server->sql("select run_as from timers.process_manager where process_manager = 'code'"), 'other',
        'or as a role that one belongs to');
    like($server->sql_error("set role timers_scheduler; update timers.process_manager set run_as = 'postgres'"),
        qr/^42501/, 'settings are changed by their function alone');
};

subtest 'scheduling over the timers of others' => sub {
    $server->sql(q{select timers.schedule('00000000-0000-4000-8000-000000000001', 'p', 'c', '2090-01-01',
        '{"secret": true}')});
    for my $call (q{schedule('00000000-0000-4000-8000-000000000001', 'p', 'c', '2090-01-02', mode => 'keep')},
        q{schedule_once('00000000-0000-4000-8000-000000000001', 'p', 'c', '2090-01-02')},
        "schedule_many($request, 'keep')") {
        my ($status, $out, $error) = $server->psql('postgres', "set role timers_scheduler; select * from timers.$call");
        unlike("$out $error", qr/secret/, 'shows nothing of them: ' . $call =~ s/\(.*//r);
    }
};

subtest 'taking it back' => sub {
    my ($take_back) = $privileges =~ /`(drop owned by timers_worker; drop role timers_worker;)`/;
    $server->sql($take_back =~ s/timers_worker/timers_$_/gr) for @roles, 'nobody';
    is($server->sql(q{select count(*) from pg_roles where rolname ~ '^timers_'}), '0', 'the roles are gone');
    is($server->sql(q{
        select count(*) from (
            select proacl as acl, proowner as owner from pg_proc where pronamespace = 'timers'::regnamespace
            union all
            select relacl, relowner from pg_class where relnamespace = 'timers'::regnamespace
            union all
            select nspacl, nspowner from pg_namespace where nspname = 'timers') o, aclexplode(o.acl) a
        where a.grantee <> o.owner}), '0', 'and nothing is left to anybody but the owner');
};

done_testing();

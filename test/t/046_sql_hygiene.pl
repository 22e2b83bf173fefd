# The install script and the SQL in the source give nobody a way in: everything is named with its schema, what runs with
# the owner's rights has a pinned search_path, nothing that exists is taken over, and nothing is granted.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use Document;
use PostgreSQL::Test::Utils qw(slurp_file);
use TimerServer;
use Test::More;

my $root = "$FindBin::RealBin/../..";
my $pinned = 'set search_path = pg_catalog, pg_temp';

# What the grammar knows, and looks up in no schema.
my %syntax = map { $_ => 1 } qw(coalesce greatest least nullif extract row array);

sub without_texts { return $_[0] =~ s/'(?:[^']|'')*'/''/gr }

# Calls of functions without a schema. The house style puts no space between a function and its arguments, and one
# before any other parenthesis.
sub unqualified_calls { return grep { !$syntax{$_} } $_[0] =~ /(?<![\w.])([a-z_]\w*)\(/g }

# Relations without a schema, unless they are names of the statement's own.
sub unqualified_relations {
    my ($sql, $own) = @_;
    # Words that stand before other things, too.
    $sql =~ s/\bextract\(\w+ from\b|\bfor (?:no key )?update (?:of|skip)\b|\bdo update\s+set\b/ /g;
    $sql =~ s/\b(?:before|after) [a-z ]+ on\b/ /g;
    return grep { !/^(?:timers|pg_catalog)\./ && !$own->{$_} }
        $sql =~ /\b(?:from|join|into|update|using|table)\s+(?:only\s+)?([a-z_][\w.]*)/g;
}

sub own_names {
    my ($sql) = @_;
    my %own = map { $_ => 1 } qw(lateral rows pg_temp);
    # Common table expressions, and aliases of what stands in from lists.
    $own{$_} = 1 for $sql =~ /\b(\w+)(?: \([\w, ]+\))? as (?:materialized )?\(/g;
    return %own;
}

subtest 'the install script' => sub {
    my $script = join '', map { slurp_file($_) } sort glob "$root/schema/*.sql";
    my ($folder) = split /\n/, qx(pg_config --sharedir);
    my ($installed) = glob "$folder/extension/durable_timers--*.sql";
    like(slurp_file($installed), qr/\A\\echo [^\n]*\n\Q$script\E\z/, 'is the topic files and nothing besides');
    my $control = slurp_file("$root/durable_timers.control");
    like($control, qr/^schema = 'pg_catalog'$/m, 'it runs with search_path = pg_catalog, pg_temp');
    like($control, qr/^relocatable = false$/m, 'and stays where it is');

    (my $code = $script) =~ s/--.*$//mg;
    my $bare = lc without_texts($code);
    my @statements = grep { /\S/ } split /;\s*\n(?=\S|\n|\z)/, $bare;
    cmp_ok(scalar @statements, '>', 100, 'it has statements');
    like($statements[0], qr/^\s*create schema timers\s*$/, 'the first makes the schema: nobody is in it before');
    is_deeply([ grep { /\bor replace\b/ } @statements ], [], 'nothing is replaced');
    is_deeply([ grep { /\bif (?:not )?exists\b/ } @statements ], [], 'nothing that exists is taken for ours');
    is_deeply([ grep { /^\s*grant\b/ } @statements ], [], 'nothing is granted');
    is_deeply([ grep { /^\s*(?:do|execute|set|reset|alter (?:system|database|role))\b/ } @statements ], [],
        'nothing is run that is put together there, and no setting changed');
    # An index or a trigger goes where its table is.
    my @elsewhere = grep { /^\s*create/ && !/^\s*create\ (?:
        schema\ timers\b | (?:type|table|view|function|sequence)\ timers\.\w |
        index\ \w+\ on\ timers\. | trigger\ \w+\ [^.]*\ on\ timers\.)/x } @statements;
    is_deeply(\@elsewhere, [], 'everything is made in the schema, by its name');
    is_deeply([ grep { /\bsecurity definer\b/ && !/\Q$pinned\E/ } @statements ], [],
        'what runs with the rights of its owner has a search_path of its own');
    my %own = own_names($bare);
    my @relations = map { unqualified_relations($_, \%own) } grep { !/^\s*revoke\b/ } @statements;
    is_deeply(\@relations, [], 'every relation is named with its schema');
    is_deeply([ unqualified_calls($bare) ], [], 'every function is called by its schema');
    is_deeply([ $bare =~ /::(?!pg_catalog\.|timers\.)(\w+)/g ], [], 'and so is every type that is cast to');
};

subtest 'the SQL in the source' => sub {
    my @texts;
    for my $file (sort glob "$root/src/*/*.[ch]pp") {
        my $source = slurp_file($file);
        my ($name) = $file =~ m{/(src/.*)};
        $source =~ s{^\s*//.*$}{}mg;
        my @here = $source =~ /R"sql\((.*?)\)sql"/sg;
        push @here, $source =~ /"((?:select|insert|update|delete|with|values)\s[^"]*)"/g;
        is(scalar @here, 0, "$name has none") if @here && $name !~ m{^src/store/};
        push @texts, map { [ $name, lc without_texts($_) ] } @here;
    }
    cmp_ok(scalar @texts, '>', 40, 'there are texts');
    my %own = map { own_names($_->[1]) } @texts;
    my @wrong;
    for my $text (@texts) {
        my ($file, $sql) = @$text;
        $sql =~ s/operator\(pg_catalog\.[^)]*\)/ /g;
        # What is set is no comparison.
        $sql =~ s/(\bset\b|,)(\s+\w+)\s+=\s/$1$2 := /g;
        # Named arguments, casts, and what means all.
        (my $rest = $sql) =~ s/=>|:=|::|\(\*\)|select \*|\w\.\*|\$\d+/ /g;
        push @wrong, map { "$file: operator $_" } $rest =~ /([=<>+*\/|~!@#%^&-]+)/g;
        push @wrong, map { "$file: function $_" } unqualified_calls($sql);
        push @wrong, map { "$file: type $_" } $sql =~ /::(?!pg_catalog\.|timers\.)(\w+)/g;
        push @wrong, map { "$file: using ($_)" } $sql =~ /\busing \((\w+)/g;
        push @wrong, map { "$file: $_" } $sql =~ /\b(in \(|between|like|similar to|is distinct from)/g;
        push @wrong, map { "$file: relation $_" } unqualified_relations($sql, \%own);
    }
    is_deeply(\@wrong, [], 'names everything with its schema, operators included');
};

# What lies in wait does not get in, even for a superuser who has it on his path.
subtest 'a database of an attacker' => sub {
    my $server = TimerServer->start_new('main', extension => 0);
    $server->sql('create role attacker login; create database hostile owner attacker');
    $server->sql(q{
        set role attacker;
        create schema evil;
        create function evil.spring(text, text) returns boolean language plpgsql as
            $$ begin raise exception 'caught'; end $$;
        create operator evil.= (leftarg = text, rightarg = text, function = evil.spring);
        create operator evil.<> (leftarg = text, rightarg = text, function = evil.spring);
        create function evil.coalesce(text, text) returns text language sql as 'select 1 / 0 || $1';
        create function evil.clock_timestamp() returns timestamptz language plpgsql as
            $$ begin raise exception 'caught'; end $$;
        create function evil.octet_length(text) returns integer language plpgsql as
            $$ begin raise exception 'caught'; end $$;
        create function evil.gen_random_uuid() returns uuid language plpgsql as
            $$ begin raise exception 'caught'; end $$;
        create domain evil.text as pg_catalog.text check (false);
        create domain evil.uuid as pg_catalog.uuid check (false);
        create domain evil.timestamptz as pg_catalog.timestamptz check (false);
        create type evil.timer_status as enum ('scheduled');
        create table evil.timer (timer_id pg_catalog.uuid);
        grant usage on schema evil to public;
        alter database hostile set search_path = evil, pg_catalog}, 'hostile');
    like($server->sql_error("select 'a'::pg_catalog.text = 'b'::pg_catalog.text", 'hostile'), qr/caught/,
        'the traps work');
    $server->sql('create extension durable_timers', 'hostile');
    is($server->sql("select pg_catalog.count(*) from pg_catalog.pg_depend d, pg_catalog.pg_namespace n
        where n.nspname operator(pg_catalog.=) 'evil' and d.classid operator(pg_catalog.<>) d.refclassid and exists (
            select from pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0) as r (name)
            where pg_catalog.strpos(r.name, 'evil.') operator(pg_catalog.>) 0)
          and exists (
            select from pg_catalog.pg_describe_object(d.classid, d.objid, 0) as o (name)
            where pg_catalog.strpos(o.name, 'timers.') operator(pg_catalog.>) 0)", 'hostile'), '0',
        'nothing of ours rests on them');
    is($server->sql("select timers.schedule(timers.timer_id('6ba7b810-9dad-11d1-80b4-00c04fd430c8', 'a'), 'p', 'c',
        pg_catalog.now())", 'hostile'), 'inserted', 'timers are scheduled');
    $server->await_ok('select pg_catalog.count(*) from timers.outbox', 'and fire', database => 'hostile',
        expected => '1');
    $server->sql("select timers.arm(); select pg_catalog.count(*) from timers.overview, timers.metrics, timers.workers;
        select timers.prometheus(); select timers.count_due(); select timers.count_stuck()", 'hostile');
    is($server->sql("select pg_catalog.count(*) from timers.find_stuck()", 'hostile'), '0', 'views and counts work');
    $server->sql('set role attacker; drop schema evil cascade', 'hostile');
    is($server->sql("select pg_catalog.count(*) from timers.overview", 'hostile'), '1', 'also when the traps are gone');
};

done_testing();

# A server whose timers are handled by SQL functions, and the words that tests of handlers share.
package HandlerServer;

use strict;
use warnings;

use TimerServer;
use Test::More;

our @ISA = ('TimerServer');

# Handlers run as "app" unless a test says otherwise. They leave a row in public.effect, if they have an effect.
my $roles = q{
create role app;
create role stranger;
};

my $words = q{
create table public.effect (
    position   bigint generated always as identity,
    name       text not null,
    attempt    integer not null,
    started_at timestamptz not null default pg_catalog.clock_timestamp(),
    ended_at   timestamptz,
    note       text
);
grant select, insert, update on public.effect to public;
grant usage on schema timers to app;
grant execute on all functions in schema timers to app;

create procedure public.took_effect(t timers.timer, note text default null) language sql as
$$ insert into public.effect (name, attempt, note) values (t.correlation_id, t.attempts, note) $$;

create function public.fate(name text) returns text language sql as
$$ select status || ' ' || attempts || coalesce(': ' || last_error, '')
   from timers.timer where timer_id = public.id(name) $$;

create function public.effects(of text default '%') returns text language sql as
$$ select coalesce(string_agg(name || ' ' || attempt || coalesce(' ' || note, ''), ', ' order by position), '')
   from public.effect where name like of $$;

create function public.handlers_running() returns bigint language sql as
$$ select count(*) from pg_stat_activity
   where backend_type = 'durable_timers handler' and datname = current_database() and query like 'running handler %'
     and state <> 'idle' $$;
};

sub start_new {
    my ($class, $name, %with) = @_;
    my $server = $class->SUPER::start_new($name, %with, extension => 0);
    $server->sql($roles);
    $server->add_extension('postgres') if $with{extension} // 1;
    return $server;
}

sub add_extension {
    my ($server, $database) = @_;
    $server->SUPER::add_extension($database);
    $server->sql($words, $database);
    return;
}

# Makes the function public.<lane> with the statements of a PL/pgSQL body, and has it handle the process manager of
# that name. Settings are those of timers.configure(); database is where, declare what the body declares.
sub add_handler {
    my ($server, $lane, $body, %settings) = @_;
    my $database = delete $settings{database};
    my $declare = delete $settings{declare} // '';
    $server->sql("create or replace function public.$lane(t timers.timer) returns uuid language plpgsql as
        \$handler\$ declare $declare begin $body end \$handler\$", $database);
    return $server->handle_by("public.$lane", $lane, %settings, database => $database);
}

# Has a function handle a process manager.
sub handle_by {
    my ($server, $function, $lane, %settings) = @_;
    my $database = delete $settings{database};
    $settings{run_as} //= 'app';
    my $list = join '', map { ", $_ => '$settings{$_}'" } sort keys %settings;
    $server->sql("select timers.configure('$lane', delivery => 'handler', handler => '$function'$list)", $database);
    return;
}

# Whether the timer comes to this end: its status, attempts and last error.
sub fate_ok {
    my ($server, $timer, $fate, $name, %with) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $server->await_ok("select fate('$timer')", $name, %with, expected => $fate);
}

# How many handler workers a database has.
sub count_handlers {
    my ($server, $database) = @_;
    return $server->sql("select count(*) from pg_stat_activity
        where backend_type = 'durable_timers handler' and datname = current_database()", $database);
}

# The pid of the one handler worker whose handler is in pg_sleep(); waits until there is one.
sub sleeping_handler {
    my ($server, $database) = @_;
    my $query = "select pid from pg_stat_activity where backend_type = 'durable_timers handler'
        and datname = current_database() and query like 'running handler %' and wait_event = 'PgSleep'";
    $server->wait_until("select count(*) from ($query) h", database => $database, expected => '1');
    return $server->sql($query, $database);
}

1;

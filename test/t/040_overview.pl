# timers.overview tells how each process manager is doing, says why what is due does not fire, and never shows a number
# as exact that is not.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::RealBin/lib";
use HandlerServer;
use Test::More;

my $server = HandlerServer->start_new('main');

# The same by reading everything.
my $truth = "
    select p.process_manager, count(t) filter (where t.status = 'scheduled') as scheduled,
           count(t) filter (where t.status = 'scheduled' and t.fire_at <= now()) as due,
           count(t) filter (where t.status = 'firing') as firing,
           count(t) filter (where t.status = 'firing' and c.lease_until <= now()) as stuck,
           count(t) filter (where t.status = 'resuming') as resuming,
           count(t) filter (where t.status = 'dead') as dead,
           min(t.fire_at) filter (where t.status = 'scheduled' and t.fire_at > now()) as next_due,
           min(t.fire_at) filter (where t.status = 'scheduled' and t.fire_at <= now()) as oldest
    from timers.process_manager p
    left join timers.timer t using (process_manager)
    left join timers.claim c using (timer_id)
    group by p.process_manager";

# Lines that differ from the truth in a number that they do not call inexact, or that are missing.
my $wrong = "
    select coalesce(o.process_manager, r.process_manager), o, r from timers.overview o
    full join ($truth) r using (process_manager)
    where o.process_manager is null or r.process_manager is null
       or (o.scheduled <> r.scheduled and 'scheduled' <> all (o.inexact))
       or (o.due <> r.due and 'due' <> all (o.inexact))
       or (o.firing <> r.firing and 'firing' <> all (o.inexact))
       or (o.stuck <> r.stuck and 'stuck' <> all (o.inexact))
       or (o.resuming <> r.resuming and 'resuming' <> all (o.inexact))
       or (o.dead <> r.dead and 'dead' <> all (o.inexact))
       or (o.next_due is distinct from r.next_due and 'next_due' <> all (o.inexact))
       or ((o.oldest_overdue is null) <> (r.oldest is null) and 'oldest_overdue' <> all (o.inexact))
       or abs(extract(epoch from o.oldest_overdue) - extract(epoch from now() - r.oldest)) > 1000000
       or o.due > r.due or o.firing > r.firing or o.stuck > r.stuck or o.next_due < r.next_due";

sub explanation_is {
    my ($lane, $expected, $name, %with) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return $server->await_ok("select coalesce(explanation, 'none') ~ '$expected' from timers.overview
        where process_manager = '$lane'", $name, %with);
}

subtest 'every number, whatever the state' => sub {
    my $database = $server->new_database('states');
    is($server->sql('select count(*) from timers.overview', $database), '0', 'nothing, no line');
    # Paused, so that they keep their states; and no time comes while the test runs.
    my $some_time = "now() + case when random() < 0.3 then -1 else 1 end * (2 + random() * 1000) * interval '1 min'";
    my $seed = int(rand(1e9));
    note("seed $seed");
    $server->sql("
        select setseed($seed / 1e9);
        select timers.pause('lane ' || n) from generate_series(1, 7) n;
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
        select gen_random_uuid(), 'lane ' || 1 + floor(random() * 6), n::text, $some_time
        from generate_series(1, 3000) n;
        update timers.timer set fire_at = $some_time where random() < 0.3;
        update timers.timer set status = 'cancelled' where random() < 0.1;
        update timers.timer set status = 'fired' where status = 'scheduled' and random() < 0.2;
        update timers.timer set status = 'dead', died_at = now() where status = 'scheduled' and random() < 0.1;
        update timers.timer set status = 'resuming' where status = 'dead' and random() < 0.2;
        update timers.timer set status = 'firing' where status = 'scheduled' and random() < 0.1", $database);
    # Nobody requeues a timer that is held locked.
    my $session = $server->session($database);
    $session->query_safe("begin; select 1 from timers.timer where status in ('firing', 'resuming') for update");
    $server->sql("
        select setseed($seed / 1e9);
        insert into timers.claim (timer_id, token, kind, attempt, lease_until, claimed_by)
        select timer_id, gen_random_uuid(), case when status = 'firing' then 'external' else 'resume' end, 1,
               $some_time, 'me'
        from timers.timer where status in ('firing', 'resuming')", $database);
    is($server->sql($wrong, $database), '', 'as counted by reading everything');
    is($server->sql("select min(sum) > 0 from (
        select sum(n) from timers.overview, unnest(array[scheduled, due, firing, stuck, resuming, dead]) with ordinality
            as a (n, i) group by i) s", $database), 't', 'there is something of each');
    $session->quit;
    is($server->sql("select count(*) from timers.overview where inexact <> '{}'", $database), '0', 'and all exactly');
    is($server->sql("select scheduled, due, dead, coalesce(next_due::text, 'never') from timers.overview
        where process_manager = 'lane 7'", $database), '0|0|0|never', 'one without timers has a line, too');
    is($server->sql("begin; select plan('own', '-1 day', 'lane 7'), plan('own too', '1 day', 'a new one');
        select scheduled || ' ' || due from timers.overview where process_manager in ('lane 7', 'a new one')
        order by process_manager; rollback", $database), "inserted|inserted\n1 0\n1 1",
        'so has what the transaction itself has done');
};

subtest 'many' => sub {
    my $database = $server->new_database('many');
    $server->sql("
        select timers.pause('overdue'), timers.pause('ahead'), timers.pause('graveyard'), timers.pause('few');
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
        select gen_random_uuid(), 'overdue', n::text, '2001-01-01' from generate_series(1, 20000) n;
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at)
        select gen_random_uuid(), 'ahead', n::text, now() + interval '1 day' + n * interval '1 s'
        from generate_series(1, 60000) n;
        insert into timers.timer (timer_id, process_manager, correlation_id, fire_at, status, died_at)
        select gen_random_uuid(), 'graveyard', n::text, '2001-01-01', 'dead', now() from generate_series(1, 20000) n;
        select plan('few ' || n, n * interval '1 day', 'few') from generate_series(-5, 5) n", $database);
    is($server->sql($wrong, $database), '', 'no number is exact that is not, and no bound is wrong');
    is($server->sql("select due, 'due' = any (inexact) from timers.overview where process_manager = 'overdue'",
        $database), '10000|t', 'what is due is counted up to ten thousand');
    is($server->sql("select scheduled, due, 'scheduled' = any (inexact) from timers.overview
        where process_manager = 'few'", $database), '11|6|f', 'few are counted beside many');
    is($server->sql("select string_agg(process_manager, ' ' order by process_manager) from timers.overview
        where 'scheduled' = any (inexact)", $database), 'ahead graveyard overdue',
        'those are estimated that are many, or may be behind many that are none');
    is($server->sql("select string_agg(o.process_manager, ' ' order by 1) from timers.overview o join ($truth) r
        using (process_manager) where abs(o.scheduled - r.scheduled) > 0.05 * 100000", $database), '',
        'an estimate is off by less than five in a hundred timers of the table');
    is($server->sql("select string_agg(process_manager, ' ') from timers.overview where 'dead' = any (inexact)
        and dead >= 10000 and dead < 25000", $database) =~ /graveyard/ ? 1 : 0, 1, 'likewise the dead');
    $server->sql("update timers.timer set status = 'cancelled' where process_manager = 'ahead'", $database);
    is($server->sql("select scheduled, coalesce(next_due::text, 'unknown'), inexact from timers.overview
        where process_manager = 'ahead'", $database), '0|unknown|{scheduled,dead,next_due}',
        'cancelled ones in front of others hide these, and it says so');
};

subtest 'why it does not fire' => sub {
    my $database = 'postgres';
    $server->sql("select plan('far', '1 day')");
    explanation_is('orders', '^none$', 'it does');
    $server->sql("select timers.pause('orders')");
    explanation_is('orders', 'paused.*timers.unpause', 'it is paused');
    $server->sql("select timers.unpause('orders'), timers.configure('orders', delivery => 'external')");
    explanation_is('orders', 'timers.claim_due', 'others claim it');
    $server->add_handler('handled', 'return t.timer_id;');
    explanation_is('handled', '^none$', 'handlers are called');
    $server->sql('alter system set durable_timers.handler_workers = 0');
    $server->reload;
    explanation_is('handled', 'handler_workers is 0', 'not without workers');
    $server->sql('alter system reset durable_timers.handler_workers');
    $server->reload;
    explanation_is('handled', '^none$', 'and again with them');
    is($server->sql("select process_manager, delivery, paused from timers.overview order by 1"),
        "handled|handler|f\norders|external|f", 'how they are delivered');
    # An error that lies in the state of the server.
    $server->sql("
        create function public.deny() returns trigger language plpgsql as
        \$\$ begin raise exception 'not allowed' using errcode = 'insufficient_privilege'; end \$\$;
        create trigger deny before insert on timers.outbox for each row execute function public.deny();
        select plan('denied', '0', 'failing'), plan('handled', '0', 'handled')");
    explanation_is('failing', 'raised an error, see the log', 'firing raises an error');
    explanation_is('handled', '^none$', 'which concerns that one alone');
    $server->sql('drop trigger deny on timers.outbox');
    explanation_is('failing', '^none$', 'until it does no more');
    is($server->sql("select due from timers.overview where process_manager = 'failing'"), '0',
        'what was due has fired');
};

done_testing();

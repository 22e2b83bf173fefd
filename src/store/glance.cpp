#include "store/glance.hpp"

#include "store/values.hpp"

namespace store {

namespace {

// $1 lanes, $2 starts, $3 how many rows behind, $4 ahead, one per lane; $5 bound, $6 now.
constinit pg::Statement select_looks{R"sql(
select a.place, b.looked operator(pg_catalog.>=) a.behind, b.due, b.oldest, b.waiting, b.waiting_fire,
       f.looked operator(pg_catalog.>=) a.ahead, f.scheduled, f.first_fire, f.reached
from rows from (pg_catalog.unnest($1), pg_catalog.unnest($2), pg_catalog.unnest($3), pg_catalog.unnest($4))
    with ordinality as a (lane, start_at, behind, ahead, place)
cross join lateral (
    select pg_catalog.count(*) as looked,
           pg_catalog.count(*) filter (where r.scheduled and r.fire_at operator(pg_catalog.<=) $6) as due,
           pg_catalog.min(r.fire_at) filter (where r.scheduled and r.fire_at operator(pg_catalog.<=) $6) as oldest,
           pg_catalog.count(*) filter (where r.scheduled and r.fire_at operator(pg_catalog.>) $6) as waiting,
           pg_catalog.min(r.fire_at) filter (where r.scheduled and r.fire_at operator(pg_catalog.>) $6) as waiting_fire
    from (
        select t.status operator(pg_catalog.=) 'scheduled' as scheduled, t.fire_at
        from timers.timer t
        where t.process_manager operator(pg_catalog.=) a.lane
          and t.wake_at operator(pg_catalog.>=) a.start_at and t.wake_at operator(pg_catalog.<=) $5
        order by t.wake_at limit a.behind) r) b
cross join lateral (
    select pg_catalog.count(*) as looked, pg_catalog.count(*) filter (where r.scheduled) as scheduled,
           pg_catalog.min(r.fire_at) filter (where r.scheduled) as first_fire, pg_catalog.max(r.wake_at) as reached
    from (
        select t.status operator(pg_catalog.=) 'scheduled' as scheduled, t.fire_at, t.wake_at
        from timers.timer t
        where t.process_manager operator(pg_catalog.=) a.lane and t.wake_at operator(pg_catalog.>) $5
        order by t.wake_at limit a.ahead) r) f
order by a.place)sql",
                                     TEXTARRAYOID, TIMESTAMPTZARRAYOID, INT8ARRAYOID, INT8ARRAYOID, TIMESTAMPTZOID,
                                     TIMESTAMPTZOID};

// $1 now, $2 most. A claim on a timer in another state is what an UPDATE by hand has left behind.
constinit pg::Statement select_claims{R"sql(
with first as materialized (
    select c.timer_id, c.lease_until from timers.claim c order by c.lease_until limit $2
)
select t.process_manager,
       pg_catalog.count(*) filter (where t.status operator(pg_catalog.=) 'firing'),
       pg_catalog.count(*) filter (
           where t.status operator(pg_catalog.=) 'firing' and c.lease_until operator(pg_catalog.<=) $1),
       pg_catalog.count(*) filter (where t.status operator(pg_catalog.=) 'resuming'),
       (select pg_catalog.count(*) from first) operator(pg_catalog.>=) $2
from first c join timers.timer t on t.timer_id operator(pg_catalog.=) c.timer_id
group by t.process_manager)sql",
                                      TIMESTAMPTZOID, INT8OID};

// $1 most.
constinit pg::Statement select_dead{R"sql(
with last as materialized (
    select t.process_manager, t.status operator(pg_catalog.=) 'dead' as dead
    from timers.timer t
    where t.died_at is not null
    order by t.died_at desc limit $1
)
select d.process_manager, pg_catalog.count(*) filter (where d.dead),
       (select pg_catalog.count(*) from last) operator(pg_catalog.>=) $1
from last d group by d.process_manager)sql",
                                    INT8OID};

// $1 how many pages at most. Evenly over the table, since what was scheduled together lies together, and is in the same
// state more often than not. An estimate is what was found, times the pages that each page looked at stands for.
constinit pg::Statement select_estimates{R"sql(
with size as materialized (
    select pg_catalog.pg_relation_size('timers.timer'::pg_catalog.regclass) operator(pg_catalog./)
        pg_catalog.current_setting('block_size')::pg_catalog.int8 as pages
), page as materialized (
    select (n.n operator(pg_catalog.*) size.pages) operator(pg_catalog./) least($1, size.pages) as number
    from size cross join lateral pg_catalog.generate_series(
        0, least($1, size.pages) operator(pg_catalog.-) 1) as n (n)
), seen as materialized (
    select r.process_manager, pg_catalog.count(*) filter (where r.scheduled) as scheduled,
           pg_catalog.count(*) filter (where r.dead) as dead
    from page cross join lateral (
        select t.process_manager, t.status operator(pg_catalog.=) 'scheduled' as scheduled,
               t.status operator(pg_catalog.=) 'dead' as dead
        from timers.timer t
        where t.ctid operator(pg_catalog.>=) pg_catalog.format('(%s,0)', page.number)::pg_catalog.tid
          and t.ctid operator(pg_catalog.<)
              pg_catalog.format('(%s,0)', page.number operator(pg_catalog.+) 1)::pg_catalog.tid
        offset 0) r
    group by r.process_manager
)
select seen.process_manager,
       (seen.scheduled operator(pg_catalog.*) size.pages) operator(pg_catalog./) least($1, size.pages),
       (seen.dead operator(pg_catalog.*) size.pages) operator(pg_catalog./) least($1, size.pages)
from seen cross join size)sql",
                                         INT8OID};

}  // namespace

std::vector<LaneLook> look_at_lanes(const std::vector<LaneReach>& lanes, core::Instant bound, core::Instant now) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    std::vector<std::string_view> names;
    std::vector<core::Instant> starts;
    std::vector<std::int64_t> behind, ahead;
    for (const LaneReach& lane : lanes) {
        names.push_back(lane.lane);
        starts.push_back(lane.start);
        behind.push_back(lane.behind);
        ahead.push_back(lane.ahead);
    }
    const pg::Rows rows =
        select_looks.run_as_of_caller({text_array(names), instant_array(starts), bigint_array(behind),
                                       bigint_array(ahead), instant_value(bound), instant_value(now)});
    std::vector<LaneLook> looks;
    for (std::uint64_t row = 0; row < rows.count(); row++) {
        LaneLook look;
        look.behind_cut = DatumGetBool(rows.datum(row, 2));
        look.due = count_at(rows, row, 3);
        look.oldest = instant_at(rows, row, 4, core::never);
        look.waiting = count_at(rows, row, 5);
        look.waiting_fire = instant_at(rows, row, 6, core::never);
        look.ahead_cut = DatumGetBool(rows.datum(row, 7));
        look.ahead = count_at(rows, row, 8);
        look.ahead_fire = instant_at(rows, row, 9, core::never);
        look.reached = instant_at(rows, row, 10, core::distant_past);
        looks.push_back(look);
    }
    return looks;
}

bool each_lane_claims(core::Instant now, std::int64_t most,
                      const std::function<void(std::string_view, const LaneClaims&)>& visit) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_claims.run_as_of_caller({instant_value(now), {Int64GetDatum(most)}});
    for (std::uint64_t row = 0; row < rows.count(); row++)
        visit(text_of(rows.datum(row, 1)), {count_at(rows, row, 2), count_at(rows, row, 3), count_at(rows, row, 4)});
    return !rows.empty() && DatumGetBool(rows.datum(0, 5));
}

bool each_lane_dead(std::int64_t most, const std::function<void(std::string_view, std::int64_t)>& visit) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_dead.run_as_of_caller({{Int64GetDatum(most)}});
    for (std::uint64_t row = 0; row < rows.count(); row++)
        visit(text_of(rows.datum(row, 1)), count_at(rows, row, 2));
    return !rows.empty() && DatumGetBool(rows.datum(0, 3));
}

void each_lane_estimate(std::int64_t most, const std::function<void(std::string_view, const LaneEstimate&)>& visit) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_estimates.run_as_of_caller({{Int64GetDatum(most)}});
    for (std::uint64_t row = 0; row < rows.count(); row++)
        visit(text_of(rows.datum(row, 1)), {count_at(rows, row, 2), count_at(rows, row, 3)});
}

}  // namespace store

#include "store/firing.hpp"

#include <climits>

#include "store/firing_sql.hpp"
#include "store/values.hpp"

namespace store {

namespace {

constinit pg::Statement outbox_pass{
    outbox_text.characters,
    TEXTARRAYOID, TIMESTAMPTZARRAYOID, INT8ARRAYOID, INT8ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
    INT8OID, TEXTOID};

constinit pg::Statement notify_pass{
    notify_text.characters,
    TEXTARRAYOID, TIMESTAMPTZARRAYOID, INT8ARRAYOID, INT8ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
    INT8OID, TEXTOID, INT8ARRAYOID, TEXTARRAYOID};

constinit pg::Statement claim_pass{
    claim_text.characters,
    TEXTARRAYOID, TIMESTAMPTZARRAYOID, INT8ARRAYOID, INT8ARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID,
    INT8OID, TEXTOID, INT8ARRAYOID, INT8OID, TEXTOID,
    TEXTOID};

// $1 lane, $2 start, $3 bound, $4 due, $5 ceiling, $6 now, $7 the error. From one second, doubling, to an hour.
constinit pg::Statement set_back_first{R"sql(
with first as materialized (
    select t.ctid as tid, (t.attempts operator(pg_catalog.-) t.forgiven) operator(pg_catalog.>=) $5 as spent
    from timers.timer t
    where t.process_manager operator(pg_catalog.=) $1
      and t.wake_at operator(pg_catalog.>=) $2 and t.wake_at operator(pg_catalog.<=) $3
      and t.status operator(pg_catalog.=) 'scheduled'
    order by t.wake_at limit 1
    for no key update of t skip locked
)
update timers.timer t
set status = case when first.spent then 'dead' else t.status end,
    died_at = case when first.spent then $6 end,
    attempts = t.attempts operator(pg_catalog.+) 1,
    fire_at = case when first.spent then t.fire_at
        else $6 operator(pg_catalog.+) pg_catalog.make_interval(
            secs => least(3600, pg_catalog.power(2, least(t.attempts, 12)))) end,
    updated_at = $6,
    last_error = $7
from first
where t.ctid operator(pg_catalog.=) first.tid and t.fire_at operator(pg_catalog.<=) $4)sql",
                                       TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID,
                                       TIMESTAMPTZOID, TEXTOID};

// Cancelled and fired rows keep their index entries: the first of a few that is scheduled, else the last of them.
constinit pg::Statement select_next_wakes{R"sql(
select a.place, coalesce(
    (select n.wake_at from (
        select t.wake_at, t.status from timers.timer t
        where t.process_manager operator(pg_catalog.=) a.lane and t.wake_at operator(pg_catalog.>) $2
        order by t.wake_at limit 256) n
     where n.status operator(pg_catalog.=) 'scheduled' limit 1),
    (select pg_catalog.max(n.wake_at) from (
        select t.wake_at from timers.timer t
        where t.process_manager operator(pg_catalog.=) a.lane and t.wake_at operator(pg_catalog.>) $2
        order by t.wake_at limit 256) n))
from pg_catalog.unnest($1) with ordinality as a (lane, place)
order by a.place)sql",
                                          TEXTARRAYOID, TIMESTAMPTZOID};

// The tasks as arrays, one per column.
class Columns {
public:
    explicit Columns(const std::vector<LaneTask>& tasks) {
        for (const LaneTask& task : tasks) {
            lanes_.push_back(task.lane);
            starts_.push_back(task.start);
            shares_.push_back(task.share);
            ceilings_.push_back(task.max_attempts.value_or(INT_MAX));
            leases_.push_back(task.lease);
            channels_.push_back(task.channel);
        }
    }

    pg::Value lane_array() const { return text_array(lanes_); }
    pg::Value start_array() const { return instant_array(starts_); }
    pg::Value share_array() const { return bigint_array(shares_); }
    pg::Value ceiling_array() const { return bigint_array(ceilings_); }
    pg::Value lease_array() const { return bigint_array(leases_); }
    pg::Value channel_array() const { return text_array(channels_); }

private:
    std::vector<std::string_view> lanes_, channels_;
    std::vector<core::Instant> starts_;
    std::vector<std::int64_t> shares_, ceilings_, leases_;
};

core::LaneScan scan_at(const pg::Rows& rows, std::uint64_t row) {
    core::LaneScan scan;
    scan.full = DatumGetBool(rows.datum(row, 2));
    scan.last_wake = instant_at(rows, row, 3, core::distant_past);
    scan.fired = count_at(rows, row, 4);
    scan.killed = count_at(rows, row, 5);
    scan.rearmed = count_at(rows, row, 6);
    scan.passed_over = instant_at(rows, row, 7, core::never);
    scan.waiting_wake = instant_at(rows, row, 8, core::never);
    scan.waiting_fire = instant_at(rows, row, 9, core::never);
    scan.skipped = count_at(rows, row, 10);
    return scan;
}
constexpr int scan_width = 10;

pg::Value armed_as(std::optional<std::string_view> identity) {
    return identity ? text_value(*identity) : pg::null_value;
}

std::vector<core::LaneScan> scans_of(const pg::Rows& rows, std::size_t tasks) {
    core::LaneScan refused;
    refused.refused = true;
    std::vector<core::LaneScan> scans(tasks, refused);
    for (std::uint64_t row = 0; row < rows.count(); row++)
        scans[static_cast<std::size_t>(DatumGetInt64(rows.datum(row, 1)) - 1)] = scan_at(rows, row);
    return scans;
}

// $1 lanes, $2 starts, $3 bound, $4 due.
constinit pg::Statement count_due_rows{R"sql(
select pg_catalog.count(*)
from rows from (pg_catalog.unnest($1), pg_catalog.unnest($2)) as a (lane, start_at)
join timers.timer t on t.process_manager operator(pg_catalog.=) a.lane
where t.wake_at operator(pg_catalog.>=) a.start_at and t.wake_at operator(pg_catalog.<=) $3
  and t.status operator(pg_catalog.=) 'scheduled' and t.fire_at operator(pg_catalog.<=) $4)sql",
                                       TEXTARRAYOID, TIMESTAMPTZARRAYOID, TIMESTAMPTZOID, TIMESTAMPTZOID};

}  // namespace

std::int64_t count_due(const std::vector<LaneTask>& tasks, const PassClock& clock) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const Columns columns(tasks);
    return count_at(count_due_rows.run({columns.lane_array(), columns.start_array(), instant_value(clock.bound),
                                        instant_value(clock.due)}),
                    0, 1);
}

std::vector<core::LaneScan> fire_into_outbox(const std::vector<LaneTask>& tasks, const PassClock& clock,
                                             std::int64_t most, std::optional<std::string_view> identity) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const Columns columns(tasks);
    return scans_of(outbox_pass.run({columns.lane_array(), columns.start_array(), columns.share_array(),
                                     columns.ceiling_array(), instant_value(clock.due), instant_value(clock.bound),
                                     instant_value(clock.now), {Int64GetDatum(most)}, armed_as(identity)}),
                    tasks.size());
}

std::vector<core::LaneScan> fire_by_notify(const std::vector<LaneTask>& tasks, const PassClock& clock,
                                           std::int64_t most, std::optional<std::string_view> identity) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const Columns columns(tasks);
    return scans_of(notify_pass.run({columns.lane_array(), columns.start_array(), columns.share_array(),
                                     columns.ceiling_array(), instant_value(clock.due), instant_value(clock.bound),
                                     instant_value(clock.now), {Int64GetDatum(most)}, armed_as(identity),
                                     columns.lease_array(), columns.channel_array()}),
                    tasks.size());
}

std::vector<core::LaneScan> claim(const std::vector<LaneTask>& tasks, const PassClock& clock, std::int64_t widest,
                                  std::int64_t most, const Claimer& claimer,
                                  const std::function<void(const pg::Rows&, std::uint64_t, int)>& visit) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const Columns columns(tasks);
    const pg::Rows rows =
        claim_pass.run({columns.lane_array(), columns.start_array(), columns.share_array(), columns.ceiling_array(),
                        instant_value(clock.due), instant_value(clock.bound), instant_value(clock.now),
                        {Int64GetDatum(most)}, armed_as(claimer.identity), columns.lease_array(),
                        {Int64GetDatum(widest)}, text_value(claimer.name),
                        text_value(core::label_of(claimer.delivery))});
    for (std::uint64_t row = 0; row < rows.count(); row++)
        if (!rows.value(row, scan_width + 1).null) visit(rows, row, scan_width + 1);
    return scans_of(rows, tasks.size());
}

void set_back(const LaneTask& task, const PassClock& clock, std::string_view error) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    set_back_first.run({text_value(task.lane), instant_value(task.start), instant_value(clock.bound),
                        instant_value(clock.due), {Int64GetDatum(task.max_attempts.value_or(INT_MAX))},
                        instant_value(clock.now), text_value(error)});
}

std::vector<core::Instant> next_wakes(const std::vector<std::string_view>& lanes, core::Instant bound) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_next_wakes.run({text_array(lanes), instant_value(bound)});
    std::vector<core::Instant> wakes;
    for (std::uint64_t row = 0; row < rows.count(); row++) wakes.push_back(instant_at(rows, row, 2, core::never));
    return wakes;
}

}  // namespace store

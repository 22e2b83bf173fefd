#include "store/inspection.hpp"

#include <algorithm>
#include <cstring>

#include "store/inspection_sql.hpp"
#include "pg/clock.hpp"
#include "store/settings.hpp"
#include "store/values.hpp"

namespace store {

namespace {

constinit pg::Statement select_inspection{inspection_text.characters,
                                          UUIDARRAYOID, TIMESTAMPTZOID, INTERVALOID, INTERVALOID,
                                          FLOAT8OID,    INTERVALOID,    INTERVALOID, INTERVALOID};

// A loose scan of the due index: one descent per lane.
constinit pg::Statement select_lanes_from{R"sql(
with recursive lane (name, place) as (
    (select t.process_manager, 1::pg_catalog.int8 from timers.timer t
     where t.process_manager operator(pg_catalog.>=) $1 order by t.process_manager limit 1)
    union all
    select (select t.process_manager from timers.timer t
            where t.process_manager operator(pg_catalog.>) l.name order by t.process_manager limit 1),
           l.place operator(pg_catalog.+) 1
    from lane l where l.name is not null and l.place operator(pg_catalog.<) $2)
select name from lane where name is not null order by place)sql",
                                          TEXTOID, INT8OID};

// By wake_at alone, as the due index has it: ties come as they come.
constinit pg::Statement select_ahead{R"sql(
select t.timer_id, t.wake_at from timers.timer t
where t.process_manager operator(pg_catalog.=) $1
  and t.wake_at operator(pg_catalog.>) $2 and t.wake_at operator(pg_catalog.<=) $3
  and t.status operator(pg_catalog.=) 'scheduled' and ($4 is null or t.fire_at operator(pg_catalog.<) $4)
order by t.wake_at limit $5)sql",
                                     TEXTOID, TIMESTAMPTZOID, TIMESTAMPTZOID, TIMESTAMPTZOID, INT8OID};

// How many timers have one wake_at, up to $3.
constinit pg::Statement count_tied{R"sql(
select pg_catalog.count(*) from (
    select from timers.timer t
    where t.process_manager operator(pg_catalog.=) $1 and t.wake_at operator(pg_catalog.=) $2 limit $3) tied)sql",
                                   TEXTOID, TIMESTAMPTZOID, INT8OID};

// $1 lane, $2 their wake_at, $3 the id that they are behind, $4 due_before, $5 how many.
constexpr SqlText tied_as_wanted = R"sql(
where t.timer_id operator(pg_catalog.>) $3
  and t.process_manager operator(pg_catalog.=) $1 and t.wake_at operator(pg_catalog.=) $2
  and t.status operator(pg_catalog.=) 'scheduled' and ($4 is null or t.fire_at operator(pg_catalog.<) $4)
order by t.timer_id limit $5)sql";

// All of them are read and sorted.
constexpr auto tied_by_time_text = SqlText(R"sql(
select t.timer_id, t.wake_at
from (select * from timers.timer t
      where t.process_manager operator(pg_catalog.=) $1 and t.wake_at operator(pg_catalog.=) $2 offset 0) t)sql") +
    tied_as_wanted;

// They are looked for among the next $6 timers in the order of ids, whatever their time.
constexpr auto tied_by_id_text = SqlText(R"sql(
select t.timer_id, t.wake_at
from (select * from timers.timer t
      where t.timer_id operator(pg_catalog.>) $3 order by t.timer_id limit $6) t)sql") +
    tied_as_wanted;

constinit pg::Statement select_tied_by_time{tied_by_time_text.characters, TEXTOID, TIMESTAMPTZOID, UUIDOID,
                                            TIMESTAMPTZOID, INT8OID};
constinit pg::Statement select_tied_by_id{tied_by_id_text.characters, TEXTOID, TIMESTAMPTZOID, UUIDOID,
                                          TIMESTAMPTZOID, INT8OID, INT8OID};

constinit pg::Statement select_firing{R"sql(
with claimed as materialized (select c.timer_id from timers.claim c)
select t.timer_id, t.wake_at, t.process_manager
from claimed c
cross join lateral (
    select * from timers.timer t where t.timer_id operator(pg_catalog.=) c.timer_id offset 0) t
where t.status operator(pg_catalog.=) 'firing'
  and ($1 is null or t.process_manager operator(pg_catalog.=) any ($1))
  and ($2 is null or t.fire_at operator(pg_catalog.<) $2)
  and (t.process_manager, t.wake_at, t.timer_id) operator(pg_catalog.>) ($3, $4, $5)
order by t.process_manager, t.wake_at, t.timer_id limit $6)sql",
                                      TEXTARRAYOID, TIMESTAMPTZOID, TEXTOID, TIMESTAMPTZOID, UUIDOID, INT8OID};

// What belongs to one correlation id is found by its index, and sorted.
constinit pg::Statement select_correlated{R"sql(
with correlated as materialized (
    select t.timer_id, t.wake_at, t.process_manager, t.fire_at from timers.timer t
    where t.correlation_id operator(pg_catalog.=) $1
      and ($2 and t.status operator(pg_catalog.=) 'scheduled' or $3 and t.status operator(pg_catalog.=) 'firing')
)
select c.timer_id, c.wake_at, c.process_manager from correlated c
where ($4 is null or c.process_manager operator(pg_catalog.=) $4)
  and ($5 is null or c.fire_at operator(pg_catalog.<) $5)
  and (c.process_manager, c.wake_at, c.timer_id) operator(pg_catalog.>) ($6, $7, $8)
order by c.process_manager, c.wake_at, c.timer_id limit $9)sql",
                                          TEXTOID,        BOOLOID, BOOLOID,        TEXTOID, TIMESTAMPTZOID,
                                          TEXTOID,        TIMESTAMPTZOID, UUIDOID, INT8OID};

// $1 died_before; $2, $3 the key that they are behind; $4 process manager, $5 how the reason is matched, $6 it, $7 how
// many. A reason is compared character by character: no pattern is made of it.
constexpr SqlText dead_as_wanted = R"sql(
where d.status operator(pg_catalog.=) 'dead'
  and ($4 is null or d.process_manager operator(pg_catalog.=) $4)
  and case
      when $5 operator(pg_catalog.=) 'none' then d.last_error is null
      when $6 is null then true
      when $5 operator(pg_catalog.=) 'prefix' then pg_catalog.starts_with(d.last_error, $6)
      when $5 operator(pg_catalog.=) 'contains' then pg_catalog.strpos(d.last_error, $6) operator(pg_catalog.>) 0
      else d.last_error operator(pg_catalog.=) $6 end
order by d.died_at, d.timer_id limit $7)sql";

// Walks the index of the dead; what is not wanted is read and left out.
constexpr auto dead_text = SqlText(R"sql(
select d.timer_id, d.died_at
from (select t.timer_id, t.died_at, t.status, t.process_manager, t.last_error from timers.timer t
      where t.died_at is not null and (t.died_at, t.timer_id) operator(pg_catalog.>) ($2, $3)
        and ($1 is null or t.died_at operator(pg_catalog.<) $1)
      order by t.died_at, t.timer_id offset 0) d)sql") + dead_as_wanted;

constinit pg::Statement select_dead{dead_text.characters, TIMESTAMPTZOID, TIMESTAMPTZOID, UUIDOID, TEXTOID,
                                    TEXTOID,              TEXTOID,        INT8OID};

// $8 the correlation id.
constexpr auto correlated_dead_text = SqlText(R"sql(
with correlated as materialized (
    select t.timer_id, t.died_at, t.status, t.process_manager, t.last_error from timers.timer t
    where t.correlation_id operator(pg_catalog.=) $8 and t.died_at is not null
)
select d.timer_id, d.died_at
from (select * from correlated c
      where (c.died_at, c.timer_id) operator(pg_catalog.>) ($2, $3)
        and ($1 is null or c.died_at operator(pg_catalog.<) $1)) d)sql") + dead_as_wanted;

constinit pg::Statement select_correlated_dead{correlated_dead_text.characters, TIMESTAMPTZOID, TIMESTAMPTZOID,
                                               UUIDOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, TEXTOID};

pg::Value text_or_null(std::optional<std::string_view> text) { return text ? text_value(*text) : pg::null_value; }
pg::Value instant_or_null(std::optional<core::Instant> at) { return at ? instant_value(*at) : pg::null_value; }
Datum datum_of(const core::TimerId& id) { return PointerGetDatum(id.data()); }

// Columns: timer_id, at, and the lane unless it is known.
Keys keys_of(const pg::Rows& rows, std::optional<std::string_view> lane) {
    Keys keys;
    for (std::uint64_t row = 0; row < rows.count(); row++)
        keys.push_back({lane ? std::string(*lane) : text_of(rows.datum(row, 3)), instant_of(rows.datum(row, 2)),
                        timer_id_of(rows.datum(row, 1))});
    return keys;
}

// Inside a session: the timers of one lane and wake_at with an id behind `after`. A tie may be as large as the table,
// and the due index does not know ids: in a large one the next ids are looked for in their own index, where it is met
// soon; when that leads too far, all of it is sorted, as a small one is.
Keys tied_of(std::string_view lane, core::Instant at, const PendingFilter& filter, const core::TimerId& after,
             std::int64_t most) {
    constexpr std::int64_t few = 10000;
    constexpr std::int64_t far = 100000;
    const pg::Value name = text_value(lane);
    const pg::Value time = instant_value(at);
    const pg::Value id{datum_of(after)};
    const pg::Value due_before = instant_or_null(filter.due_before);
    const pg::Value count{Int64GetDatum(most)};
    if (count_at(count_tied.run_as_of_caller({name, time, {Int64GetDatum(few)}}), 0, 1) == few) {
        Keys keys =
            keys_of(select_tied_by_id.run_as_of_caller({name, time, id, due_before, count, {Int64GetDatum(far)}}), lane);
        if (std::ssize(keys) == most) return keys;
    }
    return keys_of(select_tied_by_time.run_as_of_caller({name, time, id, due_before, count}), lane);
}

const char* name_of(ReasonMatch match) {
    switch (match) {
        case ReasonMatch::prefix: return "prefix";
        case ReasonMatch::contains: return "contains";
        case ReasonMatch::none: return "none";
        default: return "exact";
    }
}

}  // namespace

void inspect(std::span<const core::TimerId> ids,
             const std::function<void(const pg::Rows&, std::uint64_t, std::size_t)>& visit) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    std::vector<Datum> data;
    data.reserve(ids.size());
    for (const core::TimerId& id : ids) data.push_back(datum_of(id));
    const RetryDefaults retry = retry_defaults();
    const auto retention = default_retention();
    const pg::Rows rows = select_inspection.run_as_of_caller(
        {array_of(data, UUIDOID), instant_value(pg::wall_clock()), interval_value(default_lease()),
         interval_value(retry.delay), {Float8GetDatum(retry.factor)}, interval_value(retry.ceiling),
         interval_value(default_handler_timeout()), retention ? interval_value(*retention) : pg::null_value});
    for (std::uint64_t row = 0; row < rows.count(); row++)
        visit(rows, row, static_cast<std::size_t>(DatumGetInt64(rows.datum(row, 1)) - 1));
}

core::TimerId timer_id_of(Datum uuid) {
    core::TimerId id;
    std::memcpy(id.data(), DatumGetUUIDP(uuid)->data, id.size());
    return id;
}

std::vector<std::string> lanes_from(std::string_view first, std::int64_t most) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_lanes_from.run({text_value(first), {Int64GetDatum(most)}});
    std::vector<std::string> lanes;
    for (std::uint64_t row = 0; row < rows.count(); row++) lanes.push_back(text_of(rows.datum(row, 1)));
    return lanes;
}

Keys scheduled_of(std::string_view lane, core::Instant start, core::Instant bound, const PendingFilter& filter,
                  const core::PageKey& after, std::int64_t most) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    Keys keys;
    core::Instant behind = core::later_by(start, -1);
    if (after.lane == lane && after.at >= start) {
        keys = tied_of(lane, after.at, filter, after.id, most);
        behind = after.at;
    }
    const std::int64_t room = most - std::ssize(keys);
    if (room == 0) return keys;
    Keys ahead = keys_of(select_ahead.run_as_of_caller({text_value(lane), instant_value(behind), instant_value(bound),
                                                  instant_or_null(filter.due_before), {Int64GetDatum(room)}}),
                         lane);
    // Where the limit has cut a tie, its first ids may be others.
    if (std::ssize(ahead) == room) {
        const core::Instant last = ahead.back().at;
        std::erase_if(ahead, [&](const core::PageKey& key) { return key.at == last; });
        Keys tie = tied_of(lane, last, filter, {}, room - std::ssize(ahead));
        ahead.insert(ahead.end(), std::make_move_iterator(tie.begin()), std::make_move_iterator(tie.end()));
    }
    std::sort(ahead.begin(), ahead.end());
    keys.insert(keys.end(), std::make_move_iterator(ahead.begin()), std::make_move_iterator(ahead.end()));
    return keys;
}

Keys firing_of(std::optional<std::span<const std::string_view>> lanes, const PendingFilter& filter,
               const core::PageKey& after, std::int64_t most) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return keys_of(select_firing.run_as_of_caller({lanes ? text_array(*lanes) : pg::null_value,
                                             instant_or_null(filter.due_before), text_value(after.lane),
                                             instant_value(after.at), {datum_of(after.id)}, {Int64GetDatum(most)}}),
                   std::nullopt);
}

Keys pending_of_correlation(const PendingFilter& filter, const core::PageKey& after, std::int64_t most) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return keys_of(select_correlated.run_as_of_caller(
                       {text_or_null(filter.correlation_id), {BoolGetDatum(filter.scheduled)},
                        {BoolGetDatum(filter.firing)}, text_or_null(filter.process_manager),
                        instant_or_null(filter.due_before), text_value(after.lane), instant_value(after.at),
                        {datum_of(after.id)}, {Int64GetDatum(most)}}),
                   std::nullopt);
}

Keys dead_of(const DeadFilter& filter, const core::PageKey& after, std::int64_t most) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    // Who died at that very instant did not die after it.
    core::PageKey behind = after;
    if (filter.died_after) {
        core::PageKey first{{}, *filter.died_after, {}};
        first.id.fill(0xff);
        behind = std::max(behind, first);
    }
    const pg::Value before = instant_or_null(filter.died_before);
    const pg::Value at = instant_value(behind.at);
    const pg::Value id{datum_of(behind.id)};
    const pg::Value lane = text_or_null(filter.process_manager);
    const pg::Value match = text_value(name_of(filter.match));
    const pg::Value reason = text_or_null(filter.reason);
    const pg::Value count{Int64GetDatum(most)};
    return keys_of(filter.correlation_id
                       ? select_correlated_dead.run_as_of_caller(
                             {before, at, id, lane, match, reason, count, text_value(*filter.correlation_id)})
                       : select_dead.run_as_of_caller({before, at, id, lane, match, reason, count}),
                   "");
}

}  // namespace store

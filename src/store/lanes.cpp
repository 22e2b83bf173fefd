#include "store/lanes.hpp"

#include "store/settings.hpp"
#include "store/sql_text.hpp"
#include "store/values.hpp"

namespace store {

namespace {

constinit pg::Statement select_lane{R"sql(
select xmin from timers.process_manager where process_manager operator(pg_catalog.=) $1)sql",
                                    TEXTOID};

constinit pg::Statement insert_lane_row{R"sql(
insert into timers.process_manager (process_manager) values ($1) on conflict (process_manager) do nothing)sql",
                                        TEXTOID};

// Read by settings_at().
constexpr SqlText settings_text = R"sql(
select process_manager, delivery::pg_catalog.text, channel, max_attempts,
       (extract(epoch from lease) operator(pg_catalog.*) 1000000)::pg_catalog.int8, paused, max_concurrent,
       (extract(epoch from retention) operator(pg_catalog.*) 1000000)::pg_catalog.int8
from timers.process_manager)sql";

constinit pg::Statement select_all_settings{settings_text.characters};

constexpr auto settings_of_one_text = settings_text + R"sql(
where process_manager operator(pg_catalog.=) $1)sql";

constinit pg::Statement select_settings{settings_of_one_text.characters, TEXTOID};

// A loose scan of the due index: one descent per lane.
constinit pg::Statement select_lanes_with_timers{R"sql(
with recursive lane (name) as (
    (select process_manager from timers.timer order by process_manager limit 1)
    union all
    select (select t.process_manager from timers.timer t
            where t.process_manager operator(pg_catalog.>) l.name order by t.process_manager limit 1)
    from lane l where l.name is not null)
select name from lane where name is not null)sql"};

constinit pg::Statement select_safe_marks{"select process_manager, safe_at from timers.safe_mark"};

constinit pg::Statement select_safe_mark{R"sql(
select safe_at from timers.safe_mark where process_manager operator(pg_catalog.=) $1)sql",
                                         TEXTOID};

constinit pg::Statement select_highest_safe_mark{"select pg_catalog.max(safe_at) from timers.safe_mark"};

constinit pg::Statement upsert_safe_mark{R"sql(
insert into timers.safe_mark as m (process_manager, safe_at) values ($1, $2)
on conflict (process_manager) do update set safe_at = excluded.safe_at
where m.safe_at operator(pg_catalog.<) excluded.safe_at)sql",
                                         TEXTOID, TIMESTAMPTZOID};

core::Delivery delivery_of(const std::string& name) {
    if (name == "notify") return core::Delivery::notify;
    if (name == "handler") return core::Delivery::handler;
    if (name == "external") return core::Delivery::external;
    return core::Delivery::outbox;
}

core::LaneSettings settings_at(const pg::Rows& rows, std::uint64_t row) {
    core::LaneSettings settings;
    settings.delivery = delivery_of(text_of(rows.datum(row, 2)));
    if (const pg::Value channel = rows.value(row, 3); !channel.null) settings.channel = text_of(channel.datum);
    if (const pg::Value most = rows.value(row, 4); !most.null) settings.max_attempts = DatumGetInt32(most.datum);
    const pg::Value lease = rows.value(row, 5);
    settings.lease = lease.null ? default_lease() : DatumGetInt64(lease.datum);
    settings.paused = DatumGetBool(rows.datum(row, 6));
    if (const pg::Value most = rows.value(row, 7); !most.null) settings.max_concurrent = DatumGetInt32(most.datum);
    const pg::Value retention = rows.value(row, 8);
    settings.retention = retention.null ? default_retention() : DatumGetInt64(retention.datum);
    return settings;
}

}  // namespace

LaneRow lane_row(std::string_view lane) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_lane.run_latest({text_value(lane)});
    if (rows.empty()) return LaneRow::none;
    const TransactionId writer = DatumGetTransactionId(rows.datum(0, 1));
    return TransactionIdIsCurrentTransactionId(writer) ? LaneRow::ours : LaneRow::committed;
}

void insert_lane(std::string_view lane) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    insert_lane_row.run({text_value(lane)});
}

std::optional<core::LaneSettings> lane_settings(std::string_view lane) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_settings.run({text_value(lane)});
    if (rows.empty()) return std::nullopt;
    return settings_at(rows, 0);
}

void each_lane_settings(const std::function<void(std::string_view, core::LaneSettings)>& visit) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_all_settings.run({});
    for (std::uint64_t row = 0; row < rows.count(); row++) visit(text_of(rows.datum(row, 1)), settings_at(rows, row));
}

void each_lane_with_timers(const std::function<void(std::string_view)>& visit) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_lanes_with_timers.run({});
    for (std::uint64_t row = 0; row < rows.count(); row++) visit(text_of(rows.datum(row, 1)));
}

void each_safe_mark(const std::function<void(std::string_view, core::Instant)>& visit) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_safe_marks.run({});
    for (std::uint64_t row = 0; row < rows.count(); row++)
        visit(text_of(rows.datum(row, 1)), instant_of(rows.datum(row, 2)));
}

core::Instant safe_mark(std::string_view lane) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_safe_mark.run({text_value(lane)});
    return rows.empty() ? core::distant_past : instant_of(rows.datum(0, 1));
}

core::Instant highest_safe_mark() {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return instant_at(select_highest_safe_mark.run({}), 0, 1, core::distant_past);
}

void store_safe_mark(std::string_view lane, core::Instant safe_at) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    upsert_safe_mark.run({text_value(lane), instant_value(safe_at)});
}

}  // namespace store

// inspect(), find_pending(), find_dead().

#include "api/enums.hpp"
#include "api/errors.hpp"
#include "api/result_set.hpp"
#include "engine/pages.hpp"
#include "store/values.hpp"

namespace {

constexpr std::int32_t largest_page = 1000;

std::int32_t page_size(const api::Arguments& arguments, int position) {
    const std::int32_t size = DatumGetInt32(arguments.required(position, "page_size"));
    if (size < 1 || size > largest_page)
        api::refuse(ERRCODE_INVALID_PARAMETER_VALUE, "page_size", "must be from 1 to " + std::to_string(largest_page));
    return size;
}

std::optional<core::Instant> instant(const api::Arguments& arguments, int position, const char* name) {
    if (arguments.is_null(position)) return std::nullopt;
    return DatumGetTimestampTz(arguments.instant(position, name));
}

std::optional<std::string_view> process_manager(const api::Arguments& arguments) {
    if (arguments.is_null(0)) return std::nullopt;
    return api::view_of(arguments.process_manager(0));
}

std::optional<std::string_view> correlation_id(const api::Arguments& arguments) {
    if (arguments.is_null(1)) return std::nullopt;
    return api::view_of(arguments.correlation_id(1));
}

// The key that the page begins behind.
core::PageKey start_of_page(const api::Arguments& arguments, int position, core::CursorKind kind,
                            std::uint64_t filter) {
    if (arguments.is_null(position)) return {};
    const auto cursor = core::decode_cursor(api::view_of(arguments.required(position, "cursor")), kind, filter);
    if (cursor.fault) api::refuse_cursor(*cursor.fault, kind);
    return cursor.key;
}

// The columns of a row of store::inspect(), and its cursor.
void put_inspection(const api::ResultSet& result, const pg::Rows& rows, std::uint64_t row, pg::Value cursor) {
    std::vector<pg::Value> values;
    for (int i = 0; i + 1 < result.shape->natts; i++) values.push_back(rows.value(row, 2 + i));
    values.push_back(cursor);
    api::put(result, values);
}

engine::VisitRow page_into(const api::ResultSet& result, core::CursorKind kind, std::uint64_t filter) {
    return [&result, kind, filter](const pg::Rows& rows, std::uint64_t row, const core::PageKey& key) {
        put_inspection(result, rows, row, store::text_value(core::encode_cursor(kind, filter, key)));
    };
}

store::PendingFilter pending_filter(const api::Arguments& arguments, std::optional<std::string_view> status) {
    store::PendingFilter filter{process_manager(arguments), correlation_id(arguments),
                                instant(arguments, 3, "due_before")};
    if (!status) return filter;
    filter.scheduled = *status == "scheduled";
    filter.firing = *status == "firing";
    if (!filter.scheduled && !filter.firing)
        api::refuse(ERRCODE_INVALID_PARAMETER_VALUE, "status", "must be one of timers.pending_statuses()");
    return filter;
}

store::ReasonMatch reason_match(const api::Arguments& arguments) {
    if (arguments.is_null(3)) return store::ReasonMatch::exact;
    const std::string_view match = api::view_of(arguments.required(3, "reason_match"));
    if (match == "exact") return store::ReasonMatch::exact;
    if (match == "prefix") return store::ReasonMatch::prefix;
    if (match == "contains") return store::ReasonMatch::contains;
    if (match != "none")
        api::refuse(ERRCODE_INVALID_PARAMETER_VALUE, "reason_match", "must be exact, prefix, contains or none");
    return store::ReasonMatch::none;
}

store::DeadFilter dead_filter(const api::Arguments& arguments) {
    store::DeadFilter filter{process_manager(arguments), correlation_id(arguments), std::nullopt,
                             reason_match(arguments), instant(arguments, 4, "died_before"),
                             instant(arguments, 5, "died_after")};
    if (!arguments.is_null(2)) filter.reason = api::view_of(arguments.required(2, "reason"));
    if (filter.reason && filter.match == store::ReasonMatch::none)
        api::refuse(ERRCODE_INVALID_PARAMETER_VALUE, "reason", "must be null where reason_match is none");
    if (!filter.reason && (filter.match == store::ReasonMatch::prefix || filter.match == store::ReasonMatch::contains))
        api::refuse(ERRCODE_NULL_VALUE_NOT_ALLOWED, "reason",
                    "must not be null where reason_match is prefix or contains");
    return filter;
}

}  // namespace

TIMERS_SET_FUNCTION(timers_inspect) {
    const core::TimerId id = store::timer_id_of(arguments.required(0, "timer_id"));
    engine::inspect(id, [&](const pg::Rows& rows, std::uint64_t row, const core::PageKey&) {
        put_inspection(result, rows, row, pg::null_value);
    });
}

TIMERS_SET_FUNCTION(timers_find_pending) {
    const std::string status = arguments.is_null(2) ? "" : api::label_of(arguments.required(2, "status"));
    const auto chosen = arguments.is_null(2) ? std::nullopt : std::optional<std::string_view>(status);
    const store::PendingFilter filter = pending_filter(arguments, chosen);
    const std::int32_t size = page_size(arguments, 4);
    const std::uint64_t digest = core::FilterDigest().add(filter.process_manager).add(filter.correlation_id)
                                     .add(chosen).add(filter.due_before).value();
    const core::PageKey after = start_of_page(arguments, 5, core::CursorKind::pending, digest);
    engine::find_pending(filter, after, size, page_into(result, core::CursorKind::pending, digest));
}

TIMERS_SET_FUNCTION(timers_find_dead) {
    const store::DeadFilter filter = dead_filter(arguments);
    const std::int32_t size = page_size(arguments, 6);
    const std::uint64_t digest = core::FilterDigest().add(filter.process_manager).add(filter.correlation_id)
                                     .add(filter.reason).add(static_cast<core::Instant>(filter.match))
                                     .add(filter.died_before).add(filter.died_after).value();
    const core::PageKey after = start_of_page(arguments, 7, core::CursorKind::dead, digest);
    engine::find_dead(filter, after, size, page_into(result, core::CursorKind::dead, digest));
}

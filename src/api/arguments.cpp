#include "api/arguments.hpp"

#include "engine/shared.hpp"
#include "pg/clock.hpp"
#include "store/values.hpp"

namespace api {

void refuse(int sqlstate, const char* argument, const std::string& why) {
    pg::raise(sqlstate, std::string("argument \"") + argument + "\" " + why);
}

namespace {

// Indexed, and an index entry has to fit in a third of a page.
constexpr std::size_t longest_correlation_id = 1024;

void check_length(std::string_view text, std::size_t longest, const char* argument) {
    if (text.size() > longest)
        refuse(ERRCODE_INVALID_PARAMETER_VALUE, argument,
               "must not be longer than " + std::to_string(longest) + " bytes");
}

}  // namespace

std::string_view view_of(Datum datum) {
    const text* value = pg::call([=] { return DatumGetTextPP(datum); });
    return {VARDATA_ANY(value), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(value))};
}

void check_not_empty(std::string_view text, const char* argument) {
    if (text.empty()) refuse(ERRCODE_INVALID_PARAMETER_VALUE, argument, "must not be empty");
}

void check_process_manager(std::string_view name, const char* argument) {
    check_not_empty(name, argument);
    check_length(name, engine::longest_lane_name, argument);
}

void check_correlation_id(std::string_view id, const char* argument) {
    check_not_empty(id, argument);
    check_length(id, longest_correlation_id, argument);
}

void check_finite(core::Instant instant, const char* argument) {
    if (TIMESTAMP_NOT_FINITE(instant)) refuse(ERRCODE_INVALID_PARAMETER_VALUE, argument, "must be finite");
}

Datum Arguments::required(int position, const char* name) const {
    if (is_null(position)) refuse(ERRCODE_NULL_VALUE_NOT_ALLOWED, name, "must not be null");
    return call_->args[position].value;
}

Datum Arguments::name(int position, const char* argument) const {
    const Datum datum = required(position, argument);
    check_not_empty(view_of(datum), argument);
    return datum;
}

Datum Arguments::process_manager(int position) const {
    const Datum datum = required(position, "process_manager");
    check_process_manager(view_of(datum), "process_manager");
    return datum;
}

Datum Arguments::correlation_id(int position) const {
    const Datum datum = required(position, "correlation_id");
    check_correlation_id(view_of(datum), "correlation_id");
    return datum;
}

Datum Arguments::instant(int position, const char* name) const {
    const Datum datum = required(position, name);
    check_finite(DatumGetTimestampTz(datum), name);
    return datum;
}

core::Instant Arguments::after(core::Instant now, int position, const char* name) const {
    const Datum datum = required(position, name);
    // What would leave the range of timestamptz, give or take a year: the server's error does not name the argument.
    constexpr double days_a_month = 146097.0 / 4800;
    constexpr double year = 366;
    const Interval* interval = DatumGetIntervalP(datum);
    const double days =
        days_a_month * interval->month + interval->day + static_cast<double>(interval->time) / USECS_PER_DAY;
    const double most = static_cast<double>(END_TIMESTAMP - now) / USECS_PER_DAY - year;
    const double least = static_cast<double>(MIN_TIMESTAMP - now) / USECS_PER_DAY + year;
    if (days > most || days < least) refuse(ERRCODE_INVALID_PARAMETER_VALUE, name, "is out of range");
    return pg::call([=] {
        return DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval, TimestampTzGetDatum(now), datum));
    });
}

std::int64_t Arguments::span(int position, const char* name) const {
    const core::Instant now = pg::wall_clock();
    return after(now, position, name) - now;
}

std::int64_t Arguments::positive_span(int position, const char* name) const {
    const std::int64_t length = span(position, name);
    if (length <= 0) refuse(ERRCODE_INVALID_PARAMETER_VALUE, name, "must be longer than zero");
    return length;
}

std::int32_t Arguments::positive_count(int position, const char* name) const {
    const std::int32_t count = DatumGetInt32(required(position, name));
    if (count < 1) refuse(ERRCODE_INVALID_PARAMETER_VALUE, name, "must be at least 1");
    return count;
}

}  // namespace api

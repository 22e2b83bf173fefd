#include "store/values.hpp"

#include <vector>

#include "pg/extension.hpp"

namespace store {

pg::Value text_value(std::string_view text) {
    return {pg::call([=] {
        return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
    })};
}

Datum instant_datum(core::Instant instant) {
    if (instant < MIN_TIMESTAMP) return TimestampTzGetDatum(DT_NOBEGIN);
    if (instant >= END_TIMESTAMP) return TimestampTzGetDatum(DT_NOEND);
    return TimestampTzGetDatum(instant);
}

pg::Value instant_value(core::Instant instant) { return {instant_datum(instant)}; }

pg::Value interval_value(std::int64_t microseconds) {
    return {pg::call([=] {
        auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
        interval->time = microseconds;
        return IntervalPGetDatum(interval);
    })};
}

core::Instant instant_of(Datum datum) {
    // The infinities are the ends of 64 bits, as ours are.
    static_assert(DT_NOBEGIN == core::distant_past && DT_NOEND == core::never);
    return DatumGetTimestampTz(datum);
}

std::string text_of(Datum datum) {
    const text* value = pg::call([=] { return DatumGetTextPP(datum); });
    return {VARDATA_ANY(value), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(value))};
}

core::Instant instant_at(const pg::Rows& rows, std::uint64_t row, int column, core::Instant when_null) {
    const pg::Value value = rows.value(row, column);
    return value.null ? when_null : instant_of(value.datum);
}

std::int64_t count_at(const pg::Rows& rows, std::uint64_t row, int column) {
    const pg::Value value = rows.value(row, column);
    return value.null ? 0 : DatumGetInt64(value.datum);
}

pg::Value array_of(std::span<const Datum> items, Oid type) {
    std::vector<Datum> copy(items.begin(), items.end());
    Datum* data = copy.data();
    const int count = static_cast<int>(copy.size());
    return {pg::call([=] {
        int16 length;
        bool by_value;
        char alignment;
        get_typlenbyvalalign(type, &length, &by_value, &alignment);
        return PointerGetDatum(construct_array(data, count, type, length, by_value, alignment));
    })};
}

pg::Value text_array(std::span<const std::string_view> texts) {
    std::vector<Datum> items;
    for (const std::string_view text : texts) items.push_back(text_value(text).datum);
    return array_of(items, TEXTOID);
}

pg::Value instant_array(std::span<const core::Instant> instants) {
    std::vector<Datum> items;
    for (const core::Instant instant : instants) items.push_back(instant_datum(instant));
    return array_of(items, TIMESTAMPTZOID);
}

pg::Value bigint_array(std::span<const std::int64_t> numbers) {
    std::vector<Datum> items;
    for (const std::int64_t number : numbers) items.push_back(Int64GetDatum(number));
    return array_of(items, INT8OID);
}

Oid timer_table() {
    const Oid table = pg::find_table("timers", "timer");
    if (!OidIsValid(table))
        pg::raise(ERRCODE_UNDEFINED_TABLE, "the extension \"durable_timers\" is not installed in this database");
    return table;
}

Oid timer_type() {
    const Oid table = timer_table();
    return pg::call([=] { return get_rel_type_id(table); });
}

}  // namespace store

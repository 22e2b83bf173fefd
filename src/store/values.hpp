// How the store passes values to statements and reads them from rows.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/instant.hpp"
#include "pg/statement.hpp"

namespace store {

// Text of ours as a parameter, in the current memory context.
pg::Value text_value(std::string_view text);
pg::Value instant_value(core::Instant instant);
pg::Value interval_value(std::int64_t microseconds);

// Instants outside timestamptz's range become its infinities, and back.
Datum instant_datum(core::Instant instant);
core::Instant instant_of(Datum datum);

std::string text_of(Datum datum);

// Reading a column, with what a null stands for.
core::Instant instant_at(const pg::Rows& rows, std::uint64_t row, int column, core::Instant when_null);
std::int64_t count_at(const pg::Rows& rows, std::uint64_t row, int column);

// Arrays as parameters.
pg::Value array_of(std::span<const Datum> items, Oid type);
pg::Value text_array(std::span<const std::string_view> texts);
pg::Value instant_array(std::span<const core::Instant> instants);
pg::Value bigint_array(std::span<const std::int64_t> numbers);

// The timer table; its owner lends the rights.
Oid timer_table();
// Its row type.
Oid timer_type();

}  // namespace store

// Unpacking and checking arguments of SQL-callable functions. A bad one raises 22004 or 22023, names itself, and
// nothing has been changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/instant.hpp"
#include "pg/statement.hpp"

namespace api {

class Arguments {
public:
    explicit Arguments(FunctionCallInfo call) : call_(call) {}

    bool is_null(int position) const { return call_->args[position].isnull; }

    // Not null.
    Datum required(int position, const char* name) const;
    // Null stays null.
    pg::Value optional(int position) const { return {call_->args[position].value, call_->args[position].isnull}; }

    // Text that is not empty; the names of a process manager and of an instance are of limited length, too.
    Datum name(int position, const char* argument) const;
    Datum process_manager(int position) const;
    Datum correlation_id(int position) const;
    // A finite point in time.
    Datum instant(int position, const char* name) const;
    // `now` plus a span of time.
    core::Instant after(core::Instant now, int position, const char* name) const;
    // A span of time in microseconds; months and days count as on this day's calendar.
    std::int64_t span(int position, const char* name) const;
    // One that is longer than nothing.
    std::int64_t positive_span(int position, const char* name) const;
    // A count from 1 up.
    std::int32_t positive_count(int position, const char* name) const;

private:
    FunctionCallInfo call_;
};

// Raises that `argument` ..., in the words of `why`.
[[noreturn]] void refuse(int sqlstate, const char* argument, const std::string& why);

// The characters of a text; valid as long as the datum is.
std::string_view view_of(Datum datum);

// Checks that do not need an argument list; `argument` is named in the error.
void check_process_manager(std::string_view name, const char* argument);
void check_correlation_id(std::string_view id, const char* argument);
void check_not_empty(std::string_view text, const char* argument);
void check_finite(core::Instant instant, const char* argument);

}  // namespace api

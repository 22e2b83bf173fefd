// SQL-callable functions that return a set: all rows at once, in a tuplestore.
#pragma once

#include <cstdint>
#include <span>

#include "api/function.hpp"

namespace api {

struct ResultSet {
    Tuplestorestate* rows;
    TupleDesc shape;
};

// Adds a row, a value for each column.
void put(const ResultSet& result, std::span<const pg::Value> row);

// The same from a statement's row: the columns of `rows` from `column` on, as many as the result has.
void put_row(const ResultSet& result, const pg::Rows& rows, std::uint64_t row, int column);

// Prepares the call for a set in materialize mode.
ResultSet open_result_set(FunctionCallInfo call);

}  // namespace api

// Opens the definition of the set-returning function `name`; the body that follows receives `arguments` and fills
// `result`.
#define TIMERS_SET_FUNCTION(name)                                                                 \
    static void name##_body(const api::Arguments& arguments, const api::ResultSet& result);       \
    extern "C" {                                                                                  \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS);                                                     \
    PG_FUNCTION_INFO_V1(name);                                                                    \
    Datum name(PG_FUNCTION_ARGS) {                                                                \
        pg::entry([=] { name##_body(api::Arguments(fcinfo), api::open_result_set(fcinfo)); });    \
        fcinfo->isnull = true;                                                                    \
        return 0;                                                                                 \
    }                                                                                             \
    }                                                                                             \
    static void name##_body([[maybe_unused]] const api::Arguments& arguments, const api::ResultSet& result)

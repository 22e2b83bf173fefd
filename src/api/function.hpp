// How a SQL-callable function is declared: its C symbol, its call record, and the door from the server into C++.
#pragma once

#include "api/arguments.hpp"
#include "pg/guard.hpp"

// Opens the definition of the SQL-callable function `name`; the body that follows receives `arguments` and returns
// a pg::Value.
#define TIMERS_FUNCTION(name)                                                       \
    static pg::Value name##_body(const api::Arguments& arguments);                  \
    extern "C" {                                                                    \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS);                                       \
    PG_FUNCTION_INFO_V1(name);                                                      \
    Datum name(PG_FUNCTION_ARGS) {                                                  \
        const pg::Value result = pg::entry([=] { return name##_body(api::Arguments(fcinfo)); }); \
        fcinfo->isnull = result.null;                                               \
        return result.datum;                                                        \
    }                                                                               \
    }                                                                               \
    static pg::Value name##_body(const api::Arguments& arguments)

// Defines the trigger function `name` that runs `body(FunctionCallInfo)`.
#define TIMERS_TRIGGER(name, body)                                             \
    extern "C" {                                                               \
    PGDLLEXPORT Datum name(PG_FUNCTION_ARGS);                                  \
    PG_FUNCTION_INFO_V1(name);                                                 \
    Datum name(PG_FUNCTION_ARGS) {                                             \
        const pg::Value result = pg::entry([=] { return body(fcinfo); });      \
        fcinfo->isnull = result.null;                                          \
        return result.datum;                                                   \
    }                                                                          \
    }

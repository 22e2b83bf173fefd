// The transition that scheduling is: what is inserted, and what becomes of a timer that is there already. The upsert is
// always right. Its two halves cost less: the insert fails where a timer is there, the update moves what is scheduled and
// inserts nothing. In all of them the request is called `excluded` and the timer `t`; the row trigger sets wake_at.
#pragma once

#include "store/sql_text.hpp"

namespace store {

// Whether a timer that is there is moved.
inline constexpr SqlText while_scheduled = "t.status operator(pg_catalog.=) 'scheduled'";

// $6 the mode.
inline constexpr auto as_mode_says = while_scheduled + R"sql(
  and case
      when $6 operator(pg_catalog.=) 'replace' then true
      when $6 operator(pg_catalog.=) 'later' then excluded.fire_at operator(pg_catalog.>) t.fire_at
      when $6 operator(pg_catalog.=) 'earlier' then excluded.fire_at operator(pg_catalog.<) t.fire_at
      else false
      end)sql";

// The time it is moved to.
inline constexpr SqlText requested_time = "excluded.fire_at";

template <std::size_t time_size>
constexpr auto moved_to(const SqlText<time_size>& time) {
    return SqlText(R"sql(
set process_manager = excluded.process_manager,
    correlation_id = excluded.correlation_id,
    payload = excluded.payload,
    updated_at = pg_catalog.clock_timestamp(),
    fire_at = )sql") + time;
}

// `requests` selects timer_id, process_manager, correlation_id, fire_at and payload.
template <std::size_t requests_size>
constexpr auto insert_text(const SqlText<requests_size>& requests) {
    return SqlText(R"sql(
insert into timers.timer as t (timer_id, process_manager, correlation_id, fire_at, payload))sql") + requests;
}

// Returns a row per timer written, with its id and whether it is new: a new row has no xmax, while a row that was there
// has been locked by this transaction first, and its new version carries that lock.
template <std::size_t requests_size, std::size_t time_size, std::size_t condition_size>
constexpr auto upsert_text(const SqlText<requests_size>& requests, const SqlText<time_size>& time,
                           const SqlText<condition_size>& condition) {
    return insert_text(requests) + "\non conflict (timer_id) do update" + moved_to(time) + "\nwhere " + condition +
           "\nreturning t.timer_id, t.xmax operator(pg_catalog.=) '0'::pg_catalog.xid";
}

// `same` finds the timer of a request.
template <std::size_t requests_size, std::size_t same_size, std::size_t time_size, std::size_t condition_size>
constexpr auto update_text(const SqlText<requests_size>& requests, const SqlText<same_size>& same,
                           const SqlText<time_size>& time, const SqlText<condition_size>& condition) {
    return SqlText("\nupdate timers.timer t") + moved_to(time) + "\nfrom (" + requests + ") excluded\nwhere " + same +
           "\n  and " + condition;
}

}  // namespace store

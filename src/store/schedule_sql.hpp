// The upsert that scheduling is, put together from its parts: what is inserted, and what becomes of a timer that is
// there already.
#pragma once

#include "store/sql_text.hpp"

namespace store {

// The row trigger sets wake_at. A new row has no xmax; a row that was there has been locked by this transaction
// first, and its new version carries that lock.
inline constexpr SqlText insert_text = R"sql(
insert into timers.timer as t (timer_id, process_manager, correlation_id, fire_at, payload))sql";

inline constexpr SqlText on_conflict_text = R"sql(
on conflict (timer_id) do update
set process_manager = excluded.process_manager,
    correlation_id = excluded.correlation_id,
    payload = excluded.payload,
    updated_at = pg_catalog.clock_timestamp(),
    fire_at = )sql";

inline constexpr SqlText while_scheduled_text = R"sql(
where t.status operator(pg_catalog.=) 'scheduled')sql";

inline constexpr SqlText returning_text = R"sql(
returning t.timer_id, t.xmax operator(pg_catalog.=) '0'::pg_catalog.xid)sql";

// $6 the mode.
inline constexpr auto by_mode_text = on_conflict_text + "excluded.fire_at" + while_scheduled_text + R"sql(
  and case
      when $6 operator(pg_catalog.=) 'later' then excluded.fire_at operator(pg_catalog.>) t.fire_at
      when $6 operator(pg_catalog.=) 'earlier' then excluded.fire_at operator(pg_catalog.<) t.fire_at
      when $6 operator(pg_catalog.=) 'keep' then false
      else true
      end)sql" + returning_text;

}  // namespace store

// The part that every statement begins with that ends a claim by its token.
#pragma once

#include "store/sql_text.hpp"

namespace store {

// A firing whose claim holds: its row is locked, its claim gone. $1 the timer, $2 the token.
inline constexpr SqlText end_claim = R"sql(
with held as materialized (
    select t.timer_id from timers.timer t
    where t.timer_id operator(pg_catalog.=) $1 and t.status operator(pg_catalog.=) 'firing'
    for no key update of t
), freed as (
    delete from timers.claim c using held
    where c.timer_id operator(pg_catalog.=) held.timer_id
      and c.token operator(pg_catalog.=) $2
    returning c.timer_id
) )sql";

}  // namespace store

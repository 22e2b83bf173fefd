#include "store/outbox.hpp"

#include "store/values.hpp"

namespace store {

namespace {

constinit pg::Statement delete_events{R"sql(
with found as materialized (
    select o.ctid as tid from timers.outbox o
    where $2 is null or o.process_manager operator(pg_catalog.=) $2
    order by o.position
    limit $1
    for update skip locked
), taken as (
    delete from timers.outbox o using found where o.ctid operator(pg_catalog.=) found.tid
    returning o.*
)
select * from taken order by position)sql",
                                      INT4OID, TEXTOID};

}  // namespace

void take_events(std::int32_t most, pg::Value process_manager, Tuplestorestate* into) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = delete_events.run({{Int32GetDatum(most)}, process_manager});
    for (std::uint64_t row = 0; row < rows.count(); row++) {
        HeapTuple tuple = rows.tuple(row);
        pg::call([=] { tuplestore_puttuple(into, tuple); });
    }
}

}  // namespace store

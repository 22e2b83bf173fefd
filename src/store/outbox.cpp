#include "store/outbox.hpp"

#include "store/sql_text.hpp"
#include "store/values.hpp"

namespace store {

namespace {

// Free for a consumer: of its process manager ($2, or of any), not leased, not held by another transaction. Each has a
// statement of its own, and an order that one index alone can give.
template <std::size_t condition_size, std::size_t order_size>
constexpr auto free_events(const char (&of_whom)[condition_size], const char (&order)[order_size]) {
    return SqlText(R"sql(
with found as materialized (
    select o.ctid as tid from timers.outbox o
    where )sql") + of_whom + R"sql(
      and (o.leased_until is null or o.leased_until operator(pg_catalog.<=) pg_catalog.clock_timestamp())
    order by )sql" + order + R"sql(
    limit $1
    for update skip locked
), )sql";
}

// A range rather than an equation: that would leave the order to the primary key, too, which walks over what others
// wait for.
constexpr char of_one[] =
    "o.process_manager operator(pg_catalog.>=) $2 and o.process_manager operator(pg_catalog.<=) $2";
constexpr auto free_of_all = free_events("true", "o.position");
constexpr auto free_of_one = free_events(of_one, "o.process_manager, o.position");

constexpr SqlText take_text = R"sql(moved as (
    delete from timers.outbox o using found where o.ctid operator(pg_catalog.=) found.tid
    returning o.*
)
select * from moved order by position)sql";

constexpr SqlText lease_text = R"sql(moved as (
    update timers.outbox o
    set leased_until = pg_catalog.clock_timestamp() operator(pg_catalog.+) $3
    from found where o.ctid operator(pg_catalog.=) found.tid
    returning o.*
)
select * from moved order by position)sql";

constexpr auto take_all_text = free_of_all + take_text;
constexpr auto take_one_text = free_of_one + take_text;
constexpr auto lease_all_text = free_of_all + lease_text;
constexpr auto lease_one_text = free_of_one + lease_text;

constinit pg::Statement take_all{take_all_text.characters, INT4OID, TEXTOID};
constinit pg::Statement take_one{take_one_text.characters, INT4OID, TEXTOID};
constinit pg::Statement lease_all{lease_all_text.characters, INT4OID, TEXTOID, INTERVALOID};
constinit pg::Statement lease_one{lease_one_text.characters, INT4OID, TEXTOID, INTERVALOID};

constinit pg::Statement delete_leased{R"sql(
delete from timers.outbox where position operator(pg_catalog.=) any ($1))sql",
                                      INT8ARRAYOID};

void put(const pg::Rows& rows, Tuplestorestate* into) {
    for (std::uint64_t row = 0; row < rows.count(); row++) {
        HeapTuple tuple = rows.tuple(row);
        pg::call([=] { tuplestore_puttuple(into, tuple); });
    }
}

}  // namespace

void take_events(std::int32_t most, pg::Value process_manager, Tuplestorestate* into) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    put((process_manager.null ? take_all : take_one).run({{Int32GetDatum(most)}, process_manager}), into);
}

void lease_events(std::int32_t most, Datum lease, pg::Value process_manager, Tuplestorestate* into) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    put((process_manager.null ? lease_all : lease_one).run({{Int32GetDatum(most)}, process_manager, {lease}}), into);
}

std::int64_t ack_events(Datum positions) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return static_cast<std::int64_t>(delete_leased.run({{positions}}).count());
}

}  // namespace store

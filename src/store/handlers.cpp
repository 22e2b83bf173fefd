#include "store/handlers.hpp"

#include "store/claim_sql.hpp"
#include "store/settings.hpp"
#include "store/values.hpp"

namespace store {

namespace {

constinit pg::Statement select_handler{R"sql(
select handler, run_as, (extract(epoch from handler_timeout) operator(pg_catalog.*) 1000000)::pg_catalog.int8,
       (extract(epoch from lease) operator(pg_catalog.*) 1000000)::pg_catalog.int8
from timers.process_manager
where process_manager operator(pg_catalog.=) $1 and delivery operator(pg_catalog.=) 'handler'
  and not paused and handler is not null and run_as is not null)sql",
                                       TEXTOID};

constinit pg::Statement select_timer{R"sql(
select t from timers.timer t where t.timer_id operator(pg_catalog.=) $1)sql",
                                     UUIDOID};

constinit pg::Statement select_writer{R"sql(
select t.xmin from timers.timer t
where t.timer_id operator(pg_catalog.=) $1 and t.status operator(pg_catalog.<>) 'firing')sql",
                                      UUIDOID};

// $4 first delay, $5 factor, $6 ceiling, in seconds, where the process manager leaves them open. The delay grows with
// each attempt that counts; in logarithms, for the power would overflow. Up to a tenth is added at random, so that what
// failed together is not tried again together.
constexpr auto fail_text = end_claim + R"sql(
, settings as materialized (
    select coalesce(extract(epoch from p.retry_delay)::pg_catalog.float8, $4) as delay,
           coalesce(p.retry_factor, $5) as factor,
           coalesce(extract(epoch from p.retry_ceiling)::pg_catalog.float8, $6) as ceiling,
           p.max_attempts, t.attempts operator(pg_catalog.-) t.forgiven as counted
    from timers.timer t
    left join timers.process_manager p on p.process_manager operator(pg_catalog.=) t.process_manager
    where t.timer_id operator(pg_catalog.=) $1
), retry as materialized (
    select s.max_attempts, coalesce(s.counted operator(pg_catalog.>=) s.max_attempts, false) as spent,
           case when s.delay operator(pg_catalog.=) 0 then 0 else least(s.ceiling,
               pg_catalog.exp(least(700, pg_catalog.ln(s.delay) operator(pg_catalog.+) (
                   greatest(0, s.counted operator(pg_catalog.-) 1) operator(pg_catalog.*) pg_catalog.ln(s.factor)))))
           end as after
    from settings s
)
update timers.timer t
set status = case when r.spent then 'dead' else 'scheduled' end::timers.timer_status,
    died_at = case when r.spent then pg_catalog.clock_timestamp() end,
    last_error = case when r.spent
        then pg_catalog.format('timer exceeded attempt ceiling of %s', r.max_attempts) else $3 end,
    fire_at = case when r.spent then t.fire_at
        else pg_catalog.clock_timestamp() operator(pg_catalog.+) pg_catalog.make_interval(secs =>
            r.after operator(pg_catalog.*) (1 operator(pg_catalog.+) (pg_catalog.random() operator(pg_catalog./) 10)))
        end,
    updated_at = pg_catalog.clock_timestamp()
from freed, retry r
where t.timer_id operator(pg_catalog.=) freed.timer_id)sql";

constinit pg::Statement fail_claim{fail_text.characters, UUIDOID,   UUIDOID,  TEXTOID,
                                   FLOAT8OID,            FLOAT8OID, FLOAT8OID};

constexpr auto give_back_text = end_claim + R"sql(
update timers.timer t
set status = 'scheduled', attempts = t.attempts operator(pg_catalog.-) 1, updated_at = pg_catalog.clock_timestamp()
from freed where t.timer_id operator(pg_catalog.=) freed.timer_id)sql";

constinit pg::Statement give_back_claim{give_back_text.characters, UUIDOID, UUIDOID};

pg::Value seconds(std::int64_t microseconds) {
    return {Float8GetDatum(static_cast<double>(microseconds) / 1000000)};
}

}  // namespace

std::optional<HandlerSettings> handler_settings(std::string_view lane) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_handler.run({text_value(lane)});
    if (rows.empty()) return std::nullopt;
    const pg::Value limit = rows.value(0, 3);
    const pg::Value lease = rows.value(0, 4);
    return HandlerSettings{text_of(rows.datum(0, 1)), text_of(rows.datum(0, 2)),
                           limit.null ? default_handler_timeout() : DatumGetInt64(limit.datum),
                           lease.null ? default_lease() : DatumGetInt64(lease.datum)};
}

Datum timer_row(Datum timer_id) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_timer.run({{timer_id}});
    if (rows.empty()) return 0;
    const Datum row = rows.datum(0, 1);
    const MemoryContext outside = session.outside();
    return pg::call([=] {
        const MemoryContext inside = MemoryContextSwitchTo(outside);
        const Datum copy = PointerGetDatum(PG_DETOAST_DATUM_COPY(row));
        MemoryContextSwitchTo(inside);
        return copy;
    });
}

bool moved_by_this_transaction(Datum timer_id) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_writer.run({{timer_id}});
    return !rows.empty() && TransactionIdIsCurrentTransactionId(DatumGetTransactionId(rows.datum(0, 1)));
}

bool fail(Datum timer_id, Datum token, std::string_view error) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const RetryDefaults retry = retry_defaults();
    return fail_claim.run({{timer_id}, {token}, text_value(error), seconds(retry.delay),
                           {Float8GetDatum(retry.factor)}, seconds(retry.ceiling)}).count() > 0;
}

bool give_back(Datum timer_id, Datum token) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return give_back_claim.run({{timer_id}, {token}}).count() > 0;
}

}  // namespace store

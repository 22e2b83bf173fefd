#include "store/process_managers.hpp"

#include "store/values.hpp"

namespace store {

namespace {

// Two statements rather than an upsert: that would check the constraints on the row as if it were new.
constinit pg::Statement update_settings{R"sql(
update timers.process_manager p
set delivery = coalesce($2::timers.delivery, p.delivery),
    channel = coalesce($3, p.channel),
    handler = coalesce($4, p.handler),
    run_as = coalesce($5, p.run_as),
    max_attempts = coalesce($6, p.max_attempts),
    lease = coalesce($7, p.lease),
    retry_delay = coalesce($8, p.retry_delay),
    retry_factor = coalesce($9, p.retry_factor),
    retry_ceiling = coalesce($10, p.retry_ceiling),
    max_concurrent = coalesce($11, p.max_concurrent),
    handler_timeout = coalesce($12, p.handler_timeout),
    retention = coalesce($13, p.retention)
where p.process_manager operator(pg_catalog.=) $1)sql",
                                        TEXTOID,     TEXTOID,     TEXTOID,   TEXTOID,     TEXTOID, INT4OID,
                                        INTERVALOID, INTERVALOID, FLOAT8OID, INTERVALOID, INT4OID, INTERVALOID,
                                        INTERVALOID};

constinit pg::Statement insert_settings{R"sql(
insert into timers.process_manager
    (process_manager, delivery, channel, handler, run_as, max_attempts, lease, retry_delay, retry_factor, retry_ceiling,
     max_concurrent, handler_timeout, retention)
values ($1, coalesce($2::timers.delivery, 'outbox'), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
on conflict (process_manager) do nothing)sql",
                                        TEXTOID,     TEXTOID,     TEXTOID,   TEXTOID,     TEXTOID, INT4OID,
                                        INTERVALOID, INTERVALOID, FLOAT8OID, INTERVALOID, INT4OID, INTERVALOID,
                                        INTERVALOID};

constinit pg::Statement upsert_paused{R"sql(
insert into timers.process_manager as p (process_manager, paused) values ($1, $2)
on conflict (process_manager) do update set paused = excluded.paused
where p.paused operator(pg_catalog.<>) excluded.paused
returning p.xmax operator(pg_catalog.<>) '0'::pg_catalog.xid or p.paused)sql",
                                      TEXTOID, BOOLOID};

constinit pg::Statement select_channel{R"sql(
select 1 from timers.process_manager where process_manager operator(pg_catalog.=) $1 and channel is not null)sql",
                                       TEXTOID};

constinit pg::Statement select_handler{R"sql(
select 1 from timers.process_manager where process_manager operator(pg_catalog.=) $1 and handler is not null)sql",
                                       TEXTOID};

}  // namespace

void configure(Datum process_manager, const Settings& settings) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const auto run = [&](pg::Statement& statement) {
        return statement.run({{process_manager}, settings.delivery, settings.channel, settings.handler,
                              settings.run_as, settings.max_attempts, settings.lease, settings.retry_delay,
                              settings.retry_factor, settings.retry_ceiling, settings.max_concurrent,
                              settings.handler_timeout, settings.retention}).count() > 0;
    };
    // Somebody may add or delete the row in between.
    while (!run(update_settings) && !run(insert_settings)) continue;
}

bool set_paused(Datum process_manager, bool paused) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = upsert_paused.run({{process_manager}, {BoolGetDatum(paused)}});
    return !rows.empty() && DatumGetBool(rows.datum(0, 1));
}

bool has_channel(Datum process_manager) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return !select_channel.run({{process_manager}}).empty();
}

bool has_handler(Datum process_manager) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return !select_handler.run({{process_manager}}).empty();
}

}  // namespace store

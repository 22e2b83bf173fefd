#include "store/process_managers.hpp"

#include "store/values.hpp"

namespace store {

namespace {

constinit pg::Statement upsert_settings{R"sql(
insert into timers.process_manager as p (process_manager, delivery, channel, max_attempts, lease)
values ($1, coalesce($2::timers.delivery, 'outbox'), $3, $4, $5)
on conflict (process_manager) do update
set delivery = coalesce($2::timers.delivery, p.delivery),
    channel = coalesce($3, p.channel),
    max_attempts = coalesce($4, p.max_attempts),
    lease = coalesce($5, p.lease))sql",
                                        TEXTOID, TEXTOID, TEXTOID, INT4OID, INTERVALOID};

constinit pg::Statement upsert_paused{R"sql(
insert into timers.process_manager as p (process_manager, paused) values ($1, $2)
on conflict (process_manager) do update set paused = excluded.paused
where p.paused operator(pg_catalog.<>) excluded.paused
returning p.xmax operator(pg_catalog.<>) '0'::pg_catalog.xid or p.paused)sql",
                                      TEXTOID, BOOLOID};

constinit pg::Statement select_channel{R"sql(
select 1 from timers.process_manager where process_manager operator(pg_catalog.=) $1 and channel is not null)sql",
                                       TEXTOID};

}  // namespace

void configure(Datum process_manager, const Settings& settings) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    upsert_settings.run(
        {{process_manager}, settings.delivery, settings.channel, settings.max_attempts, settings.lease});
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

}  // namespace store

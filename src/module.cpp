// The library's start. Preloaded by the postmaster it brings shared memory, hooks and the launcher; loaded later,
// by the first call in a session, the SQL functions alone.

#include "engine/shared.hpp"
#include "engine/transaction_end.hpp"
#include "pg/guard.hpp"
#include "pg/settings.hpp"
#include "store/settings.hpp"
#include "workers/workers.hpp"

extern "C" {

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void _PG_init(void) {
    store::define_settings();
    if (process_shared_preload_libraries_in_progress) {
        pg::define_int("durable_timers.max_databases", "How many databases can have their timers fired.",
                       &engine::max_databases, engine::max_databases, 1, 100000, 0, pg::Reload::on_start);
        pg::define_int("durable_timers.max_lanes",
                       "How many process managers, over all databases, have their place in shared memory.",
                       &engine::max_lanes, engine::max_lanes, 1, 1000000, 0, pg::Reload::on_start);
        pg::define_int("durable_timers.handler_workers", "How many handler workers a database may have at a time.",
                       &engine::max_handler_workers, engine::max_handler_workers, 0, engine::most_handler_workers, 0,
                       pg::Reload::on_reload);
        engine::request_shared();
        workers::install_hooks();
        // A server that is being upgraded keeps still.
        if (!IsBinaryUpgrade) workers::register_launcher();
    }
    pg::reserve_setting_prefix("durable_timers");
    engine::register_transaction_callbacks();
}
}

// The background processes. A launcher per server sees to it that every database with the extension has its
// dispatcher, and a dispatcher per database fires its timers:
//
//              server starts, recovery ends, extension comes or goes, database is created
//                                               |
//                                               v
//             +--------- launcher: look at pg_database, start a dispatcher where none is known to be absent
//             |                                 |
//             v                                 v
//     extension absent  <-- exits --  dispatcher: looks for the extension, then passes and sleeps
//     (until it comes)                          |      and calls lanes whose timers have handlers
//                                               +-- exits on an error:        started again with back-off
//                                               +-- exits for a command that needs the database empty:
//                                                   started again when the command has ended
//
// A called lane makes the launcher start handler workers, up to durable_timers.handler_workers in a database; they leave
// when they have been idle for a while.
#pragma once

#include "pg/server.hpp"

namespace workers {

// To be called from _PG_init while the server preloads libraries.
void register_launcher();
void install_hooks();

// Start a worker in a database; false when no worker slot is free.
bool start_dispatcher(Oid database, BackgroundWorkerHandle** handle);
bool start_handler(Oid database, BackgroundWorkerHandle** handle);

}  // namespace workers

// What every background process of ours does the same way.
#pragma once

#include "pg/guard.hpp"

namespace workers {

// Signal handlers, then signals. SIGTERM ends the process at the next CHECK_FOR_INTERRUPTS, also while a commit waits
// for a synchronous standby, unless `on_terminate` does something else; SIGHUP marks the configuration for reading.
void unblock_signals(void (*on_terminate)(int) = die);

// Once per loop, with no transaction open: end if asked to, answer barriers, read the configuration. True when it was
// read.
bool handle_interrupts();

// A filled-in BackgroundWorker of this library; `name` is its type, too.
BackgroundWorker describe_worker(const char* name, const char* entry_point, int restart_seconds);

// As its application's name, in pg_stat_activity and in log lines. Once the process is connected.
void show_name();

// Starts one for a database, never restarted by the postmaster (it would be, for ever, against a dropped database);
// false when no worker slot is free.
bool start_worker(const char* name, const char* entry_point, Oid database, BackgroundWorkerHandle** handle);

// What a worker of a database does once it is connected: joins, and leaves however it ends; a Process runs meanwhile.
template <typename Process>
[[noreturn]] void be_worker(Datum database, bool (*join)(), void (*leave)(int, Datum)) {
    BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(database), InvalidOid, 0);
    pg::entry([=] {
        show_name();
        if (!join()) return;
        pg::call([=] { before_shmem_exit(leave, 0); });
        Process process;
        process.run();
    });
    proc_exit(0);
}

}  // namespace workers

#include "workers/process.hpp"

#include "pg/guard.hpp"

namespace workers {

void unblock_signals(void (*on_terminate)(int)) {
    pqsignal(SIGTERM, on_terminate);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    BackgroundWorkerUnblockSignals();
}

bool handle_interrupts() {
    return pg::call([] {
        CHECK_FOR_INTERRUPTS();
        if (!ConfigReloadPending) return false;
        ConfigReloadPending = false;
        ProcessConfigFile(PGC_SIGHUP);
        return true;
    });
}

BackgroundWorker describe_worker(const char* name, const char* entry_point, int restart_seconds) {
    BackgroundWorker worker{};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = restart_seconds;
    strlcpy(worker.bgw_name, name, sizeof worker.bgw_name);
    strlcpy(worker.bgw_type, name, sizeof worker.bgw_type);
    strlcpy(worker.bgw_library_name, "durable_timers", sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, entry_point, sizeof worker.bgw_function_name);
    return worker;
}

void show_name() {
    pg::call([] { SetConfigOption("application_name", MyBgworkerEntry->bgw_name, PGC_USERSET, PGC_S_SESSION); });
}

bool start_worker(const char* name, const char* entry_point, Oid database, BackgroundWorkerHandle** handle) {
    BackgroundWorker worker = describe_worker(name, entry_point, BGW_NEVER_RESTART);
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    worker.bgw_notify_pid = MyProcPid;
    return pg::call([&] { return RegisterDynamicBackgroundWorker(&worker, handle); });
}

}  // namespace workers

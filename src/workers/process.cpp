#include "workers/process.hpp"

#include "pg/guard.hpp"

namespace workers {

void unblock_signals() {
    pqsignal(SIGTERM, die);
    pqsignal(SIGHUP, SignalHandlerForConfigReload);
    BackgroundWorkerUnblockSignals();
}

void handle_interrupts() {
    pg::call([] {
        CHECK_FOR_INTERRUPTS();
        if (ConfigReloadPending) {
            ConfigReloadPending = false;
            ProcessConfigFile(PGC_SIGHUP);
        }
    });
}

BackgroundWorker describe_worker(const char* name, const char* type, const char* entry_point, int restart_seconds) {
    BackgroundWorker worker{};
    worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
    worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
    worker.bgw_restart_time = restart_seconds;
    strlcpy(worker.bgw_name, name, sizeof worker.bgw_name);
    strlcpy(worker.bgw_type, type, sizeof worker.bgw_type);
    strlcpy(worker.bgw_library_name, "durable_timers", sizeof worker.bgw_library_name);
    strlcpy(worker.bgw_function_name, entry_point, sizeof worker.bgw_function_name);
    return worker;
}

}  // namespace workers

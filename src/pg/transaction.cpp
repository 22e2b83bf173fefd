#include "pg/transaction.hpp"

namespace pg {

void begin_transaction(const char* activity) {
    call([=] {
        SetCurrentStatementStartTimestamp();
        StartTransactionCommand();
        // Whatever the defaults of the server, the database or the role.
        XactIsoLevel = XACT_READ_COMMITTED;
        XactReadOnly = false;
        PushActiveSnapshot(GetTransactionSnapshot());
        pgstat_report_activity(STATE_RUNNING, activity);
    });
}

void show_activity(const char* activity) {
    call([=] { pgstat_report_activity(STATE_RUNNING, activity); });
}

void show_idle(const char* activity) {
    call([=] { pgstat_report_activity(STATE_IDLE, activity); });
}

void commit_transaction() {
    call([] {
        PopActiveSnapshot();
        CommitTransactionCommand();
        pgstat_report_stat(false);
        pgstat_report_activity(STATE_IDLE, nullptr);
    });
}

void commit_locally() {
    call([] {
        set_config_option("synchronous_commit", "local", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
    });
}

}  // namespace pg

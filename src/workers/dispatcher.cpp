// The dispatcher: the process that fires one database's timers. It never runs user code. Policy is
// engine/dispatch.hpp; here are only the process, its transactions and its sleep.

#include <string>
#include <utility>

#include "engine/dispatch.hpp"
#include "pg/alarm.hpp"
#include "pg/clock.hpp"
#include "pg/compat.hpp"
#include "workers/member.hpp"
#include "workers/process.hpp"
#include "workers/workers.hpp"

namespace workers {

namespace {

// No sleep is longer: a clock that jumps forward is not always noticed at once.
constexpr std::int64_t longest_sleep = core::minute;

// Takes the database's place in shared memory, or says that somebody else has it.
bool take_place() {
    const engine::SharedLock lock;
    engine::SharedDatabase* database = engine::find_database(MyDatabaseId);
    if (database == nullptr || database->dispatcher_pid != 0 || database->leaving > 0) return false;
    database->dispatcher_pid = MyProcPid;
    database->dispatcher_latch = MyLatch;
    database->started_at = pg::wall_clock();
    database->extension_changed = false;
    return true;
}

// However the process ends: nobody sets the latch of a dead dispatcher. The launcher looks at why.
void leave_place(int, Datum) {
    const engine::SharedLock lock;
    engine::SharedDatabase* database = engine::find_database(MyDatabaseId);
    if (database == nullptr || database->dispatcher_pid != MyProcPid) return;
    database->dispatcher_pid = 0;
    database->dispatcher_latch = nullptr;
    engine::wake_launcher();
}

// Whether the extension has changed since we looked.
bool extension_changed() {
    const engine::SharedLock lock;
    engine::SharedDatabase* database = engine::find_database(MyDatabaseId);
    return database != nullptr && std::exchange(database->extension_changed, false);
}

class DispatcherProcess {
public:
    // Until somebody wants the process gone.
    void run() {
        if (!member_.in_transaction("looking for the extension", [this] { dispatch_.start(); })) return;
        Member::set_presence(engine::Presence::present);
        while (!Member::must_leave()) {
            if (handle_interrupts()) dispatch_.reload();
            if (extension_changed() && !member_.in_transaction("looking for the extension", [] {})) return;

            dispatch_.open();
            if (dispatch_.has_work()) {
                if (!member_.in_transaction("looking for something to do", [this] { dispatch_.work(); })) return;
                dispatch_.committed();
                shown_.clear();
            }
            dispatch_.close();
            show_sleep();
            // A latch that is set ends the sleep at once: something came while the pass was under way.
            alarm_.sleep_until(dispatch_.deadline(), longest_sleep, wait_);
        }
    }

private:
    // To pg_stat_activity; a wake-up without work leaves it alone.
    void show_sleep() {
        const core::Instant deadline = dispatch_.deadline();
        if (deadline <= pg::wall_clock()) return;
        std::string activity = "waiting for timers";
        if (!dispatch_.armed())
            activity = "waiting for timers.arm()";
        else if (deadline != core::never)
            activity = "sleeping until " + pg::instant_text(deadline);
        if (activity == shown_) return;
        shown_ = std::move(activity);
        pg::show_idle(shown_.c_str());
    }

    Member member_;
    engine::Dispatch dispatch_;
    pg::Alarm alarm_;
    std::string shown_;
    uint32 wait_ = pg::wait_event("DurableTimersSleep");
};

}  // namespace

bool start_dispatcher(Oid database, BackgroundWorkerHandle** handle) {
    return start_worker("durable_timers dispatcher", "durable_timers_dispatcher_main", database, handle);
}

}  // namespace workers

extern "C" {
PGDLLEXPORT void durable_timers_dispatcher_main(Datum argument);

void durable_timers_dispatcher_main(Datum argument) {
    workers::unblock_signals();
    workers::be_worker<workers::DispatcherProcess>(argument, workers::take_place, workers::leave_place);
}
}

// The dispatcher: the process that fires one database's timers. It never runs user code. Policy is
// engine/dispatch.hpp; here are only the process, its transactions and its sleep.

#include "engine/dispatch.hpp"

#include "engine/waking.hpp"
#include "pg/alarm.hpp"
#include "pg/clock.hpp"
#include "pg/compat.hpp"
#include "pg/extension.hpp"
#include "pg/log.hpp"
#include "pg/transaction.hpp"
#include "workers/process.hpp"
#include "workers/workers.hpp"

namespace workers {

namespace {

constexpr const char* extension_name = "durable_timers";
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

void set_presence(engine::Presence presence) {
    const engine::SharedLock lock;
    if (engine::SharedDatabase* database = engine::find_database(MyDatabaseId)) {
        // It may have come back since we looked.
        if (presence == engine::Presence::absent && database->extension_changed) return;
        database->presence = presence;
    }
}

// What others want of this process.
struct Wishes {
    bool leave;
    bool look_for_extension;
};

Wishes take_wishes() {
    const engine::SharedLock lock;
    engine::SharedDatabase* database = engine::find_database(MyDatabaseId);
    if (database == nullptr) return {true, false};
    const Wishes wishes{database->leaving > 0, database->extension_changed};
    database->extension_changed = false;
    return wishes;
}

// The extension in this database; locked against DROP EXTENSION until the transaction ends, so that a pass and a
// drop cannot deadlock over the tables.
bool lock_extension(Oid* owner) {
    Oid extension = InvalidOid;
    if (!pg::find_extension(extension_name, &extension, owner)) return false;
    pg::call([=] { LockDatabaseObject(ExtensionRelationId, extension, 0, AccessShareLock); });
    // It may have been dropped while we waited.
    return pg::find_extension(extension_name, &extension, owner);
}

// Works as the extension's owner from here on, not as the bootstrap superuser.
void become(Oid owner) {
    pg::call([=] { SetSessionAuthorization(owner, superuser_arg(owner)); });
}

class Process {
public:
    // Until somebody wants the process gone.
    void run() {
        if (!start()) return;
        for (;;) {
            handle_interrupts();
            const Wishes wishes = take_wishes();
            if (wishes.leave) return;
            if (wishes.look_for_extension && !in_locked_transaction("looking for the extension", [] {})) return;

            dispatch_.open();
            if (dispatch_.has_work()) {
                if (!in_locked_transaction("firing due timers", [this] { dispatch_.work(); })) return;
                dispatch_.committed();
            }
            dispatch_.close();
            // A latch that is set ends the sleep at once: something came while the pass was under way.
            alarm_.sleep_until(dispatch_.deadline(), longest_sleep, wait_);
        }
    }

private:
    bool start() {
        const bool found = in_locked_transaction("looking for the extension", [this] {
            become(owner_);
            dispatch_.start();
        });
        if (found) set_presence(engine::Presence::present);
        return found;
    }

    // Runs `body` in a transaction in which the extension stays; false, having run nothing, when it is gone.
    template <typename Body>
    bool in_locked_transaction(const char* activity, Body&& body) {
        bool found = false;
        pg::in_transaction(activity, [&] {
            found = lock_extension(&owner_);
            if (found) body();
        });
        if (!found) set_presence(engine::Presence::absent);
        return found;
    }

    engine::Dispatch dispatch_;
    pg::Alarm alarm_;
    uint32 wait_ = pg::wait_event("DurableTimersSleep");
    Oid owner_ = InvalidOid;
};

}  // namespace

bool start_dispatcher(Oid database, BackgroundWorkerHandle** handle) {
    BackgroundWorker worker = describe_worker("durable_timers dispatcher", "durable_timers dispatcher",
                                              "durable_timers_dispatcher_main", BGW_NEVER_RESTART);
    worker.bgw_main_arg = ObjectIdGetDatum(database);
    worker.bgw_notify_pid = MyProcPid;
    return pg::call([&] { return RegisterDynamicBackgroundWorker(&worker, handle); });
}

}  // namespace workers

extern "C" {
PGDLLEXPORT void durable_timers_dispatcher_main(Datum argument);

void durable_timers_dispatcher_main(Datum argument) {
    workers::unblock_signals();
    BackgroundWorkerInitializeConnectionByOid(DatumGetObjectId(argument), InvalidOid, 0);
    pg::entry([] {
        if (!workers::take_place()) return;
        pg::call([] { before_shmem_exit(workers::leave_place, 0); });
        workers::Process process;
        process.run();
    });
    proc_exit(0);
}
}

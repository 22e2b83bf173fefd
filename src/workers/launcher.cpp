// The launcher: one per server, connected to no database, started when recovery ends (so at once on promotion,
// and never on a standby). Keeps a dispatcher in every database that has the extension.

#include <algorithm>
#include <map>
#include <string>

#include "core/backoff.hpp"
#include "engine/calls.hpp"
#include "engine/shared.hpp"
#include "pg/alarm.hpp"
#include "pg/clock.hpp"
#include "pg/compat.hpp"
#include "pg/log.hpp"
#include "pg/transaction.hpp"
#include "workers/process.hpp"
#include "workers/workers.hpp"

namespace workers {

namespace {

constexpr std::int64_t between_slot_attempts = core::second;
// A dispatcher that ran this long has not failed at its start.
constexpr std::int64_t proven = core::minute;

void leave_launcher(int, Datum) {
    const engine::SharedLock lock;
    engine::set_launcher_latch(nullptr);
}

// The databases that one can connect to.
std::map<Oid, std::string> connectable_databases() {
    std::map<Oid, std::string> databases;
    pg::in_transaction("looking for databases", [&] {
        Relation catalog = pg::call([] { return table_open(DatabaseRelationId, AccessShareLock); });
        TableScanDesc scan = pg::call([=] { return table_beginscan_catalog(catalog, 0, nullptr); });
        while (HeapTuple tuple = pg::call([=] { return heap_getnext(scan, ForwardScanDirection); })) {
            const auto* form = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple));
            if (form->datallowconn) databases.emplace(form->oid, NameStr(form->datname));
        }
        pg::call([=] {
            table_endscan(scan);
            table_close(catalog, AccessShareLock);
        });
    });
    return databases;
}

class Launcher {
public:
    void run() {
        for (;;) {
            handle_interrupts();
            ResetLatch(MyLatch);
            survey();
            core::Instant next = core::never;
            for (auto& [database, charge] : charges_)
                next = std::min({next, attend(database, charge, charge.dispatcher), attend(database, charge, charge.handler)});
            pg::show_idle("waiting for databases, workers and calls");
            alarm_.sleep_until(next, core::minute * 60, wait_);
        }
    }

private:
    // A worker that the launcher starts, and starts again.
    struct Post {
        bool (*start)(Oid database, BackgroundWorkerHandle** handle);
        bool (*wanted)(const engine::SharedDatabase& database);
        BackgroundWorkerHandle* handle = nullptr;
        core::Instant started_at = core::distant_past;
        core::Instant not_before = core::distant_past;
        core::Backoff failures{core::second / 5, core::minute};
        int refusals = 0;                     // in a row, for want of a worker slot
        std::uint64_t joined_before = 0;      // handler workers, when this one was started
    };

    // A database that the launcher looks after. It may have several handler workers; one at a time is on its way.
    struct Charge {
        std::string name;
        Post dispatcher{start_dispatcher, dispatcher_wanted};
        Post handler{start_handler, handler_wanted};
    };

    // The extension is there, or may be, nobody runs, and nobody needs the database empty.
    static bool dispatcher_wanted(const engine::SharedDatabase& database) {
        return database.presence != engine::Presence::absent && database.dispatcher_pid == 0 && database.leaving == 0;
    }

    static bool handler_wanted(const engine::SharedDatabase& database) {
        return database.presence == engine::Presence::present && engine::handler_wanted(database);
    }

    // Closes the places of databases that are gone and opens one for each new database.
    void survey() {
        const std::map<Oid, std::string> databases = connectable_databases();
        bool full = false;
        {
            const engine::SharedLock lock;
            for (auto* place = engine::first_database(); place != engine::end_of_databases(); place++)
                if (OidIsValid(place->oid) && !databases.contains(place->oid) && is_deserted(*place))
                    engine::close_database(*place);
            for (const auto& [database, name] : databases) full |= engine::open_database(database) == nullptr;
        }
        std::erase_if(charges_, [&](const auto& charge) { return !has_place(charge.first); });
        for (const auto& [database, name] : databases)
            if (has_place(database)) charges_.try_emplace(database).first->second.name = name;

        if (full && !told_of_places_)
            pg::warn("there are more databases than durable_timers.max_databases: the timers of some do not fire",
                     nullptr, "Raise durable_timers.max_databases and restart the server.");
        told_of_places_ = full;
    }

    static bool is_deserted(const engine::SharedDatabase& place) {
        return place.dispatcher_pid == 0 && place.leaving == 0 && engine::handlers_at_work(place) == 0;
    }

    static bool has_place(Oid database) {
        const engine::SharedLock lock;
        return engine::find_database(database) != nullptr;
    }

    // Sees to it that the post is filled if it is to be; returns when to look again.
    core::Instant attend(Oid database, const Charge& charge, Post& post) {
        const core::Instant now = pg::wall_clock();
        if (post.handle != nullptr && !is_free(database, post, now)) return core::never;
        if (!is_wanted(database, post)) {
            refused(database, charge, post, false);
            return core::never;
        }
        if (now < post.not_before) return post.not_before;

        post.joined_before = handlers_joined(database);
        const bool started = post.start(database, &post.handle);
        refused(database, charge, post, !started);
        if (started) {
            post.started_at = now;
            return core::never;
        }
        post.handle = nullptr;
        return core::later_by(now, between_slot_attempts);
    }

    // Counts attempts in a row that found no worker slot, and says so. At the server's start every database is looked at;
    // slots that are short only then are no news. Nor is it if a handler worker more would have been welcome.
    static void refused(Oid database, const Charge& charge, Post& post, bool refused) {
        const bool handlers = post.start == start_handler;
        post.refusals = refused && !(handlers && has_handlers(database)) ? post.refusals + 1 : 0;
        if (post.refusals == 2)
            pg::warn(std::string("no background worker slot is free: ") + (handlers ? "handlers" : "timers") +
                         " of database \"" + charge.name + "\" do not " + (handlers ? "run" : "fire"),
                     nullptr, "Raise max_worker_processes and restart the server.");
        const engine::SharedLock lock;
        engine::SharedDatabase* place = engine::find_database(database);
        if (place != nullptr) (handlers ? place->handlers_out_of_slots : place->out_of_slots) = post.refusals > 1;
    }

    static bool has_handlers(Oid database) {
        const engine::SharedLock lock;
        const engine::SharedDatabase* place = engine::find_database(database);
        return place != nullptr && engine::handlers_at_work(*place) > 0;
    }

    // Whether another worker may be started: the last one has ended, as the postmaster knows, or is a handler worker
    // that has joined the others. One that ended without having come to work makes its successor wait.
    static bool is_free(Oid database, Post& post, core::Instant now) {
        const bool joined = post.start == start_handler && handlers_joined(database) != post.joined_before;
        pid_t pid = 0;
        const BgwHandleStatus status = pg::call([&] { return GetBackgroundWorkerPid(post.handle, &pid); });
        if (!joined && (status == BGWH_STARTED || status == BGWH_NOT_YET_STARTED)) return false;
        pfree(post.handle);
        post.handle = nullptr;
        if (joined || core::later_by(post.started_at, proven) < now || !is_wanted(database, post)) {
            post.failures.succeed();
            post.not_before = now;
        } else {
            post.not_before = core::later_by(now, post.failures.fail());
        }
        return true;
    }

    static std::uint64_t handlers_joined(Oid database) {
        const engine::SharedLock lock;
        const engine::SharedDatabase* place = engine::find_database(database);
        return place == nullptr ? 0 : place->handlers_joined;
    }

    static bool is_wanted(Oid database, const Post& post) {
        const engine::SharedLock lock;
        const engine::SharedDatabase* place = engine::find_database(database);
        return place != nullptr && post.wanted(*place);
    }

    std::map<Oid, Charge> charges_;
    bool told_of_places_ = false;
    pg::Alarm alarm_;
    uint32 wait_ = pg::wait_event("DurableTimersLauncher");
};

}  // namespace

void register_launcher() {
    BackgroundWorker worker = describe_worker("durable_timers launcher", "durable_timers_launcher_main", 1);
    RegisterBackgroundWorker(&worker);
}

}  // namespace workers

extern "C" {
PGDLLEXPORT void durable_timers_launcher_main(Datum argument);

void durable_timers_launcher_main(Datum) {
    workers::unblock_signals();
    BackgroundWorkerInitializeConnection(nullptr, nullptr, 0);
    pg::entry([] {
        workers::show_name();
        pg::call([] { before_shmem_exit(workers::leave_launcher, 0); });
        {
            const engine::SharedLock lock;
            engine::set_launcher_latch(MyLatch);
        }
        workers::Launcher launcher;
        launcher.run();
    });
    proc_exit(0);
}
}

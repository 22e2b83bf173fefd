// The workers as shared memory knows them, for the view timers.workers.

#include <optional>

#include "api/result_set.hpp"
#include "engine/shared.hpp"
#include "store/values.hpp"

namespace {

const char* state_of(const engine::SharedDatabase* database) {
    if (!engine::available()) return "not preloaded";
    if (RecoveryInProgress()) return "standby";
    if (database == nullptr) return "no place";
    if (database->dispatcher_pid != 0) return database->unarmed ? "not armed" : "running";
    if (database->leaving > 0) return "left for a command";
    if (database->out_of_slots) return "no worker slot";
    return database->presence == engine::Presence::absent ? "absent" : "starting";
}

const char* explanation_of(const char* state) {
    const std::string_view name = state;
    if (name == "not preloaded")
        return "nothing fires by itself: add durable_timers to shared_preload_libraries and restart, or call timers.fire_due()";
    if (name == "standby") return "the primary fires the timers; this server does once it is promoted";
    if (name == "not armed") return "the timers were restored, cloned or upgraded: call timers.arm() if they are to fire here";
    if (name == "no place") return "more databases than durable_timers.max_databases";
    if (name == "no worker slot") return "all of max_worker_processes are taken; it is tried again";
    if (name == "left for a command") return "a command needs the database free of sessions";
    return nullptr;
}

// A row of timers.workers; what is null is left out.
struct Row {
    const char* worker;
    const char* state;
    std::optional<int> pid;
    std::optional<core::Instant> started_at;
    std::optional<core::Instant> sleeps_until;
    std::optional<std::uint64_t> passes;
    std::optional<std::uint64_t> wakeups;
    std::optional<std::uint64_t> fired;
};

void put(const api::ResultSet& result, const Row& row) {
    const auto count = [](std::optional<std::uint64_t> number) {
        return number ? pg::Value{Int64GetDatum(static_cast<std::int64_t>(*number))} : pg::null_value;
    };
    const auto instant = [](std::optional<core::Instant> at) {
        return at ? store::instant_value(*at) : pg::null_value;
    };
    const char* explanation = explanation_of(row.state);
    const pg::Value columns[] = {store::text_value(row.worker),
                                 store::text_value(row.state),
                                 row.pid ? pg::Value{Int32GetDatum(*row.pid)} : pg::null_value,
                                 instant(row.started_at),
                                 instant(row.sleeps_until),
                                 count(row.passes),
                                 count(row.wakeups),
                                 count(row.fired),
                                 explanation != nullptr ? store::text_value(explanation) : pg::null_value};
    api::put(result, columns);
}

}  // namespace

TIMERS_SET_FUNCTION(timers_workers) {
    // A copy: nothing that allocates runs under the lock.
    engine::SharedDatabase copy{};
    const engine::SharedDatabase* database = nullptr;
    if (engine::available()) {
        const engine::SharedLock lock;
        if (const auto* found = engine::find_database(MyDatabaseId)) {
            copy = *found;
            database = &copy;
        }
    }
    Row dispatcher{"dispatcher", state_of(database)};
    if (database != nullptr) {
        dispatcher.passes = database->passes;
        dispatcher.wakeups = database->wakeups;
        dispatcher.fired = database->fired;
    }
    if (database != nullptr && database->dispatcher_pid != 0) {
        dispatcher.pid = database->dispatcher_pid;
        dispatcher.started_at = database->started_at;
        if (database->deadline < core::never - 1) dispatcher.sleeps_until = database->deadline;
    }
    put(result, dispatcher);
    if (database == nullptr) return;
    for (const engine::HandlerPlace& handler : database->handlers)
        if (handler.pid != 0) put(result, {"handler", handler.lane != nullptr ? "running" : "idle", handler.pid});
    if (database->handlers_out_of_slots) put(result, {"handler", "no worker slot"});
}

// The workers as shared memory knows them, for the view timers.workers.

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
    const char* state = state_of(database);
    const bool running = database != nullptr && database->dispatcher_pid != 0;
    const bool sleeping = running && database->deadline < core::never - 1;
    const char* explanation = explanation_of(state);

    Datum values[9];
    bool nulls[9] = {};
    values[0] = store::text_value("dispatcher").datum;
    values[1] = store::text_value(state).datum;
    values[2] = Int32GetDatum(copy.dispatcher_pid);
    nulls[2] = nulls[3] = !running;
    values[3] = TimestampTzGetDatum(copy.started_at);
    values[4] = store::instant_datum(copy.deadline);
    nulls[4] = !sleeping;
    values[5] = Int64GetDatum(static_cast<std::int64_t>(copy.passes));
    values[6] = Int64GetDatum(static_cast<std::int64_t>(copy.wakeups));
    values[7] = Int64GetDatum(static_cast<std::int64_t>(copy.fired));
    nulls[8] = explanation == nullptr;
    values[8] = explanation == nullptr ? 0 : store::text_value(explanation).datum;
    pg::call([&] { tuplestore_putvalues(result.rows, result.shape, values, nulls); });
}

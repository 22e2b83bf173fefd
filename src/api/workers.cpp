// The workers as shared memory knows them, for the view timers.workers.

#include <optional>

#include "api/result_set.hpp"
#include "engine/dispatcher_state.hpp"
#include "store/values.hpp"

namespace {

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
    const char* explanation = engine::explanation_of(row.state);
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
    Row dispatcher{"dispatcher", engine::dispatcher_state(database)};
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

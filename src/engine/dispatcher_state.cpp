#include "engine/dispatcher_state.hpp"

#include <string_view>

namespace engine {

const char* dispatcher_state(const SharedDatabase* database) {
    if (!available()) return "not preloaded";
    if (RecoveryInProgress()) return "standby";
    if (database == nullptr) return "no place";
    if (database->dispatcher_pid != 0) return database->unarmed ? "not armed" : "running";
    if (database->leaving > 0) return "left for a command";
    if (database->out_of_slots) return "no worker slot";
    return database->presence == Presence::absent ? "absent" : "starting";
}

const char* explanation_of(const char* state) {
    const std::string_view name = state;
    if (name == "not preloaded")
        return "nothing fires by itself: add durable_timers to shared_preload_libraries and restart, or call "
               "timers.fire_due()";
    if (name == "standby") return "the primary fires the timers; this server does once it is promoted";
    if (name == "not armed")
        return "the timers were restored, cloned or upgraded: call timers.arm() if they are to fire here";
    if (name == "no place") return "more databases than durable_timers.max_databases";
    if (name == "no worker slot") return "all of max_worker_processes are taken; it is tried again";
    if (name == "left for a command") return "a command needs the database free of sessions";
    if (name == "absent") return "the dispatcher found no extension; it looks again when one comes";
    if (name == "starting") return "the dispatcher is about to start";
    return nullptr;
}

}  // namespace engine

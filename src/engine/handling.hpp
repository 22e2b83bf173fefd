// The policy of a handler worker: one timer at a time, in two transactions. The claim commits first, so that an attempt
// counts even if the handler takes the server down; then the handler and the completion commit together. Runs no SQL
// of its own and never waits; workers/handler.cpp drives it.
#pragma once

#include <optional>
#include <string>

#include "engine/calls.hpp"
#include "store/handlers.hpp"

namespace engine {

// A timer that this worker has claimed.
struct Claimed {
    std::string process_manager;
    pg_uuid_t timer_id;
    pg_uuid_t token;
    store::HandlerSettings settings;    // as of the claim
};

class Handling {
public:
    Handling();

    // Claims a timer of the lane, so that the next commit counts the attempt. Drained when none is due (and says when one
    // will be), or when the lane is not to be served by handlers now. An error undoes the claim alone; a request to cancel
    // counts as one.
    TurnEnd claim(const std::string& lane, std::optional<Claimed>& claimed);

    // Ends the turn, and sees to it that a lane whose timers could not be claimed is called again.
    static void end(const Turn& turn, TurnEnd end);

private:
    std::optional<Claimed> try_to_claim(const std::string& lane);

    const std::string identity_;
    const std::string name_;
};

// After its commit, in a transaction of its own: calls the handler, and completes, leaves or fails the claim.
// `interrupted` tells whether the worker is being sent away: then the attempt is given back.
void handle(const Claimed& claimed, bool (*interrupted)());

// The same when the handler is not even to begin: the timer is scheduled again, and the attempt does not count.
void give_back(const Claimed& claimed);

}  // namespace engine

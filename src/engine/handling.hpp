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
};

class Handling {
public:
    Handling();

    // First transaction: claims a timer of the lane. Nothing when none is due (and says when one will be), or when the
    // lane is not to be served by handlers now.
    std::optional<Claimed> claim(const std::string& lane);

    // After its commit, in a transaction of its own: calls the handler, and completes, leaves or fails the claim.
    // `interrupted` tells whether the worker is being sent away: then the attempt is given back.
    void handle(const Claimed& claimed, bool (*interrupted)());

private:
    void run_handler(const Claimed& claimed, const store::HandlerSettings& settings);

    const std::string identity_;
    const std::string name_;
    std::optional<store::HandlerSettings> settings_;    // as of the claim
};

}  // namespace engine

// What a worker shares with the others of its database: transactions in which the extension stays, the rights of its
// owner, and leaving when a command needs the database free of sessions.
#pragma once

#include "engine/shared.hpp"
#include "pg/transaction.hpp"

namespace workers {

inline constexpr const char* extension_name = "durable_timers";

class Member {
public:
    // Runs `body` in a transaction in which the extension cannot be dropped, as the extension's owner; false, having run
    // nothing, when the extension is not there.
    template <typename Body>
    bool in_transaction(const char* activity, Body&& body) {
        bool found = false;
        pg::in_transaction(activity, [&] {
            found = lock_extension();
            if (found) body();
        });
        if (!found) set_presence(engine::Presence::absent);
        return found;
    }

    // Some command needs the database free of sessions, or the database has lost its place.
    static bool must_leave();

    static void set_presence(engine::Presence presence);

private:
    bool lock_extension();

    Oid owner_ = InvalidOid;
};

}  // namespace workers

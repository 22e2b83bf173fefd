// What becomes of a claim: renewed, completed, released, or requeued when its lease has run out. Each locks the
// timer's row before the claim's, so that no two of them can deadlock. Renewing touches the claim alone.
#pragma once

#include <cstdint>
#include <optional>

#include "core/instant.hpp"
#include "pg/statement.hpp"
#include "store/schedule.hpp"

namespace store {

// What became of an operation that presents a token.
struct Held {
    bool done;
    std::optional<std::string> status;    // the timer's, if the claim did not hold; nothing when there is no such timer
};

struct Renewed {
    Held held;
    core::Instant lease_until = core::never;
};
// `lease` null: as the process manager has it, else the setting.
Renewed renew(Datum timer_id, Datum token, pg::Value lease);

Held complete(Datum timer_id, Datum event_id, Datum token);
// Without a token: whoever may call it vouches for the firing.
Change complete_unclaimed(Datum timer_id, Datum event_id);

Held release(Datum timer_id, Datum token, Datum fire_at, pg::Value error);

// Removes the claims on timers that have just left `firing` by their ids alone. A statement of its own: the one that
// changed the timer may have waited for whoever claimed it, and its snapshot would not show that claim. Inside a
// session.
void drop_claim(Datum timer_id);
void drop_claims(Datum timer_ids);

// Requeues at most `most` firings whose lease ended at `as_of` or before; with `older_than`, whose claim is at
// least that old instead. Returns how many.
std::int64_t requeue_expired(core::Instant as_of, pg::Value older_than, std::int64_t most);

// The first lease that ends at `from` or later, of all claims or of resumes only, or `never`.
core::Instant next_lease(core::Instant from, bool resumes_only);

}  // namespace store

// Guarded resume: a dead timer is claimed by whoever deals with it by hand, and nobody else moves it until he
// completes, parks or cancels the resume, or its lease ends. Each locks the timer's row before the claim's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/instant.hpp"
#include "pg/statement.hpp"

namespace store {

// What is asked for, and what the timer must be like.
struct ResumeRequest {
    Datum timer_id;
    Datum lease;
    Datum claimed_by;
    pg::Value expected_process_manager;    // null: any
    pg::Value expected_attempts;
};

// Claims the timer and returns it as a timers.claimed_timer; nothing unless it is dead and as expected. A resume whose
// lease has ended is taken over, whether anybody has noticed its end or not.
std::optional<Datum> claim_dead(const ResumeRequest& request);

// How a timer stands, as of the newest snapshot: why it was not claimed, or why a token does not hold.
struct ResumeStanding {
    std::string status;
    std::string process_manager;
    std::int32_t attempts = 0;
    bool held = false;         // by a resume whose lease has not ended
    bool by_token = false;     // the claim on it has the token asked for
    core::Instant lease_until = core::never;
    std::string claimed_by;
};
// Nothing when there is no such timer.
std::optional<ResumeStanding> resume_standing(Datum timer_id, pg::Value token);

// The new end of the lease; nothing when the token does not hold, as with the others.
std::optional<core::Instant> renew_resume(Datum timer_id, Datum token, Datum lease);
bool complete_resume(Datum timer_id, Datum token, Datum event_id);
// Without a `reason` the old one stays.
bool park_resume(Datum timer_id, Datum token, pg::Value reason);
bool cancel_resume(Datum timer_id, Datum token);

// Makes at most `most` timers dead again whose resume's lease ended at `as_of` or before. Returns how many.
std::int64_t recover_expired_resumes(core::Instant as_of, std::int64_t most);

}  // namespace store

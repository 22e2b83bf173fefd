#include "api/errors.hpp"

#include "api/arguments.hpp"
#include "pg/guard.hpp"

namespace api {

namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string quoted_id(Datum timer_id) {
    const char* text = pg::call([=] { return DatumGetCString(DirectFunctionCall1(uuid_out, timer_id)); });
    return quoted(text);
}

std::string written(core::Instant instant) {
    return pg::call([=] { return timestamptz_to_str(instant); });
}

[[noreturn]] void refuse_unknown(Datum timer_id) {
    pg::raise(no_such_timer, "timer " + quoted_id(timer_id) + " does not exist",
              "Either it was never scheduled, or it has ended and was deleted since.",
              "If it goes by another id, timers.find_pending() and timers.find_dead() find it by its correlation_id.");
}

[[noreturn]] void refuse_stale(Datum timer_id, const char* detail, const char* hint) {
    pg::raise(stale_claim, "the claim on timer " + quoted_id(timer_id) + " no longer holds", detail, hint);
}

const char* advice_for(std::string_view status) {
    if (status == "scheduled") return "It fires when it is due; timers.dead_letter() gives up on it.";
    if (status == "firing") return "A worker holds it; timers.dead_letter() gives up on it.";
    return "This state is final.";
}

}  // namespace

pg::Value change_value(store::Change change, Datum timer_id) {
    if (change == store::Change::guarded) {
        pg::raise(wrong_state, "timer " + quoted_id(timer_id) + " is being resumed",
                  "A guarded claim holds it; its id alone does not move it.",
                  "Whoever holds the claim completes, parks or cancels the resume; otherwise its lease runs out.");
    }
    return {BoolGetDatum(change == store::Change::done)};
}

void require_held(const store::Held& held, Datum timer_id) {
    if (held.done) return;
    if (!held.status) refuse_unknown(timer_id);
    if (*held.status == "resuming")
        refuse_stale(timer_id, "The timer is \"resuming\".",
                     "A resume is renewed, completed, parked or cancelled by the functions for resumes.");
    const char* under = *held.status == "firing" ? ", under another claim." : ".";
    refuse_stale(
        timer_id, ("The timer is " + quoted(*held.status) + under).c_str(),
        "The lease may have run out, or the timer was completed, cancelled or requeued. Undo what was done for it.");
}

void require_resume(bool done, Datum timer_id, Datum token) {
    if (done) return;
    const auto standing = store::resume_standing(timer_id, {token});
    if (!standing) refuse_unknown(timer_id);
    const bool resuming = standing->status == "resuming";
    std::string detail = "The timer is " + quoted(standing->status) + (resuming ? ", under another claim." : ".");
    if (resuming && standing->by_token && !standing->held)
        detail = "Its lease ended at " + written(standing->lease_until) + ".";
    refuse_stale(timer_id, detail.c_str(),
                 "Undo what was done for it. If it is dead, timers.claim_dead() claims it anew.");
}

void refuse_resume(const store::ResumeRequest& request) {
    const auto standing = store::resume_standing(request.timer_id, pg::null_value);
    if (!standing) refuse_unknown(request.timer_id);
    const std::string timer = "timer " + quoted_id(request.timer_id);
    if (standing->status != "dead" && standing->status != "resuming")
        pg::raise(wrong_state, timer + " is " + standing->status + ", not dead", "Only a dead timer can be resumed.",
                  advice_for(standing->status));
    if (standing->held) {
        const std::string detail =
            quoted(standing->claimed_by) + " resumes it until " + written(standing->lease_until) + ".";
        pg::raise(held_by_another, timer + " is held by another resume", detail.c_str(),
                  "Try again when that has ended, or leave the timer to whoever holds it.");
    }
    constexpr const char* look = "Look at the timer, with timers.inspect(), and decide anew.";
    if (!request.expected_process_manager.null) {
        const std::string_view expected = view_of(request.expected_process_manager.datum);
        if (expected != standing->process_manager) {
            const std::string detail = "Argument \"expected_process_manager\" is " + quoted(expected) +
                                       ", the process manager is " + quoted(standing->process_manager) + ".";
            pg::raise(expectation_not_met, timer + " is of another process manager", detail.c_str(), look);
        }
    }
    if (!request.expected_attempts.null) {
        const std::int32_t expected = DatumGetInt32(request.expected_attempts.datum);
        if (expected != standing->attempts) {
            const std::string detail = "Argument \"expected_attempts\" is " + std::to_string(expected) +
                                       ", the attempts are " + std::to_string(standing->attempts) + ".";
            pg::raise(expectation_not_met, timer + " has had another number of attempts", detail.c_str(), look);
        }
    }
    // It has become free since, and the snapshot of this transaction will never show that.
    if (IsolationUsesXactSnapshot())
        pg::raise(ERRCODE_T_R_SERIALIZATION_FAILURE, "could not serialize access due to concurrent update");
}

void refuse_cursor(core::CursorFault fault, core::CursorKind wanted) {
    constexpr const char* again =
        "Pass it as it was returned, with the filters it was returned for, or start without one.";
    const std::string kind(core::name_of(wanted));
    switch (fault) {
        case core::CursorFault::truncated:
            pg::raise(bad_cursor, "argument \"cursor\" is truncated", "Its end is missing.", again);
        case core::CursorFault::other_kind:
            pg::raise(bad_cursor, "argument \"cursor\" is of another kind",
                      ("It does not belong to pages of kind \"" + kind + "\".").c_str(), again);
        case core::CursorFault::other_filter:
            pg::raise(bad_cursor, "argument \"cursor\" was made under another filter",
                      "Every argument but page_size must be what it was for the page before.", again);
        default:
            pg::raise(bad_cursor, "argument \"cursor\" is malformed", "It is not what a page has returned.", again);
    }
}

}  // namespace api

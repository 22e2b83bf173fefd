#include "api/errors.hpp"

#include <string>

#include "pg/guard.hpp"

namespace api {

namespace {

std::string quoted(Datum timer_id) {
    const char* text = pg::call([=] { return DatumGetCString(DirectFunctionCall1(uuid_out, timer_id)); });
    return std::string("\"") + text + "\"";
}

}  // namespace

pg::Value change_value(store::Change change, Datum timer_id) {
    if (change == store::Change::guarded) {
        pg::raise(wrong_state, "timer " + quoted(timer_id) + " is being resumed", "A guarded claim holds it; its id alone does not move it.",
                  "Whoever holds the claim completes, parks or cancels the resume; otherwise its lease runs out.");
    }
    return {BoolGetDatum(change == store::Change::done)};
}

void require_held(const store::Held& held, Datum timer_id) {
    if (held.done) return;
    if (!held.status)
        pg::raise(no_such_timer, "timer " + quoted(timer_id) + " does not exist",
                  "Either it was never scheduled, or it has ended and was deleted since.");
    std::string detail = "The timer is \"" + *held.status + "\"";
    detail += *held.status == "firing" ? ", under another claim." : ".";
    pg::raise(stale_claim, "the claim on timer " + quoted(timer_id) + " no longer holds", detail.c_str(),
              "The lease may have run out, or the timer was completed, cancelled or requeued. Undo what was done for it.");
}

}  // namespace api

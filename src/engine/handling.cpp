#include "engine/handling.hpp"

#include <algorithm>

#include "engine/session_pass.hpp"
#include "engine/transaction_end.hpp"
#include "engine/waking.hpp"
#include "pg/clock.hpp"
#include "pg/log.hpp"
#include "pg/user_function.hpp"
#include "store/arming.hpp"
#include "store/claims.hpp"
#include "store/values.hpp"

namespace engine {

namespace {

// What a handler may take beyond its limit until it is gone, and then some.
constexpr std::int64_t overrun = 10 * core::second;

Datum datum_of(const pg_uuid_t& id) { return UUIDPGetDatum(&id); }

void run_handler(const Claimed& claimed) {
    const store::HandlerSettings& settings = claimed.settings;
    const Oid function = pg::find_function(settings.function, store::timer_type());
    if (!OidIsValid(function))
        pg::raise(ERRCODE_UNDEFINED_FUNCTION, "handler \"" + settings.function + "\" does not exist");
    // It may have been replaced since it was configured.
    if (!pg::returns(function, UUIDOID))
        pg::raise(ERRCODE_INVALID_FUNCTION_DEFINITION,
                  "handler \"" + settings.function + "\" is not a function that returns one uuid");
    const Oid role = pg::find_role(settings.run_as);
    if (!OidIsValid(role)) pg::raise(ERRCODE_UNDEFINED_OBJECT, "role \"" + settings.run_as + "\" does not exist");

    const Datum id = datum_of(claimed.timer_id);
    const Datum timer = store::timer_row(id);
    // Deleted by hand since it was claimed: there is nothing to handle.
    if (timer == 0) return;
    const pg::Value event = pg::call_as(role, function, timer, settings.time_limit);
    // A handler may cancel its own timer; that stands.
    if (store::moved_by_this_transaction(id)) return;
    if (event.null) {
        // It stays firing: from here for the lease of its process manager, no longer for as long as the handler may run.
        store::renew(id, datum_of(claimed.token), pg::null_value);
        return;
    }
    if (!store::complete(id, event.datum, datum_of(claimed.token)).done)
        pg::raise(ERRCODE_T_R_SERIALIZATION_FAILURE, "the claim was taken away while the handler ran");
}

}  // namespace

Handling::Handling() : identity_(store::own_identity()), name_("handler worker/" + std::to_string(MyProcPid)) {}

TurnEnd Handling::claim(const std::string& lane, std::optional<Claimed>& claimed) {
    claimed.reset();
    const auto failure = pg::attempt([&] { claimed = try_to_claim(lane); }, pg::any_error);
    if (!failure) return claimed ? TurnEnd::claimed : TurnEnd::drained;
    pg::warn("could not claim timers of process manager \"" + lane + "\": " + failure->message, nullptr,
             "The process manager is tried again in a while; the others go on.");
    return TurnEnd::failed;
}

void Handling::end(const Turn& turn, TurnEnd end) { note_next_look(turn.lane, end_turn(turn, end)); }

std::optional<Claimed> Handling::try_to_claim(const std::string& lane) {
    const std::optional<store::HandlerSettings> settings = store::handler_settings(lane);
    if (!settings) return std::nullopt;

    std::optional<Claimed> claimed;
    // A handler holds its claim for as long as it may run, so that no second one starts beside it.
    const std::int64_t lease = std::max(settings->lease, settings->time_limit + overrun);
    const ClaimRequest request{lane, pg::wall_clock(), 1, lease, {core::Delivery::handler, name_, identity_}};
    const ClaimOutcome outcome =
        claim_due(request, [&](const pg::Rows& rows, std::uint64_t row, int column) {
            claimed = Claimed{lane, *DatumGetUUIDP(rows.datum(row, column)),
                              *DatumGetUUIDP(rows.datum(row, column + 7)), *settings};
        });
    if (claimed && outcome.more) ask_for_help();
    if (!claimed) note_next_look(lane, outcome.next);
    return claimed;
}

void handle(const Claimed& claimed, bool (*interrupted)()) {
    const auto failure = pg::attempt([&] { run_handler(claimed); }, pg::any_error);
    if (!failure) return;
    if (interrupted()) {
        give_back(claimed);
    } else if (store::fail(datum_of(claimed.timer_id), datum_of(claimed.token), failure->message)) {
        counts_of(claimed.process_manager).handler_failures++;
        pg::log("the handler of process manager \"" + claimed.process_manager + "\" failed: " + failure->message);
    }
}

void give_back(const Claimed& claimed) { store::give_back(datum_of(claimed.timer_id), datum_of(claimed.token)); }

}  // namespace engine

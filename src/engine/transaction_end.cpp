#include "engine/transaction_end.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/lane_registry.hpp"
#include "engine/waking.hpp"
#include "pg/clock.hpp"
#include "pg/server.hpp"
#include "store/arming.hpp"
#include "store/lanes.hpp"

namespace engine {

namespace {

struct PendingRaise {
    std::string lane;
    Instant mark;
    ScanStart since;
};

struct State {
    core::TransactionNotes notes;
    core::TransactionCounts counts;
    Instant lease = core::never;
    bool settings_changed = false;
    bool extension_changed = false;
    bool prepared_finished = false;
    std::vector<PendingRaise> raises;
    bool disarmed = false;        // and that is in the transaction under way
    bool floor_read = false;      // since the table lock was taken
    Instant floor = core::distant_past;

    bool says_something() const {
        return notes.touched() || !counts.empty() || lease != core::never || settings_changed || extension_changed ||
               prepared_finished;
    }
};

// Lives as long as the process: a global with a destructor would run it at exit.
State& state() {
    static State* const lasting = new State;
    return *lasting;
}

void publish_all(bool rolled_back) {
    const State& now = state();
    if (!now.says_something()) return;
    publish({rolled_back, &now.notes, &now.counts, now.lease, now.settings_changed, now.extension_changed,
             now.prepared_finished});
}

void forget() {
    State& now = state();
    if (now.says_something()) {
        now.notes.clear();
        now.counts.clear();
    }
    now.lease = core::never;
    now.settings_changed = now.extension_changed = now.prepared_finished = false;
    now.raises.clear();
    now.disarmed = false;
    now.floor_read = false;
    forget_ensured_lanes();
}

// Neither callback may raise: the transaction has ended, one way or the other.
void on_transaction_end(XactEvent event, void*) {
    switch (event) {
        case XACT_EVENT_COMMIT:
            publish_all(false);
            for (const PendingRaise& raise : state().raises) raise_mark(raise.lane, raise.mark, raise.since);
            break;
        case XACT_EVENT_PREPARE:
            publish_all(false);
            break;
        case XACT_EVENT_ABORT:
            publish_all(true);
            break;
        default:
            return;
    }
    forget();
}

void on_savepoint_end(SubXactEvent event, SubTransactionId, SubTransactionId, void*) {
    const int depth = GetCurrentTransactionNestLevel();
    if (event == SUBXACT_EVENT_COMMIT_SUB) state().counts.keep(depth);
    if (event != SUBXACT_EVENT_ABORT_SUB) return;
    state().counts.roll_back(depth);
    // The rows that the savepoint locked are free from here, while the transaction may go on for long.
    publish_all(true);
    // Its table lock may have gone with it, and with that the right to the floor that was read under it.
    state().floor_read = false;
    state().disarmed = false;
    forget_ensured_lanes();
    // A scan whose writes were rolled back covered nothing.
    state().raises.clear();
}

}  // namespace

void register_transaction_callbacks() {
    RegisterXactCallback(on_transaction_end, nullptr);
    RegisterSubXactCallback(on_savepoint_end, nullptr);
}

core::TransactionNotes& notes() { return state().notes; }

core::LaneCounts& counts_of(std::string_view lane) {
    return state().counts.of(lane, GetCurrentTransactionNestLevel());
}

void count_delivered(std::string_view lane, core::Delivery delivery, std::int64_t timers) {
    if (timers > 0) counts_of(lane).delivered[static_cast<std::size_t>(delivery)] += static_cast<std::uint64_t>(timers);
}

void note_lease(Instant lease_until) { state().lease = std::min(state().lease, lease_until); }
void note_settings_changed() { state().settings_changed = true; }
void note_extension_changed() { state().extension_changed = true; }
void note_prepared_finished() { state().prepared_finished = true; }

void disarm_once() {
    if (std::exchange(state().disarmed, true)) return;
    store::disarm();
}

void raise_mark_at_commit(std::string_view lane, Instant mark, const ScanStart& since) {
    // A mark past the clock would skip what is written meanwhile.
    state().raises.push_back({std::string(lane), std::min(mark, pg::wall_clock()), since});
}

Instant write_floor() {
    State& now = state();
    if (!now.floor_read) {
        if (!read_floor(now.floor)) now.floor = store::highest_safe_mark();
        now.floor_read = true;
    }
    return std::max(now.floor, pg::wall_clock());
}

}  // namespace engine

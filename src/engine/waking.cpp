#include "engine/waking.hpp"

#include <algorithm>
#include <utility>

namespace engine {

namespace {

void list(SharedDatabase& database, SharedLane& lane) {
    if (lane.listed) return;
    lane.listed = true;
    lane.next_noted = database.noted_lanes;
    database.noted_lanes = &lane;
}

void leave_note(SharedDatabase& database, std::string_view name, const core::LaneNote& note) {
    SharedLane* lane = open_lane(database.oid, name);
    if (lane == nullptr) {
        database.spilled = std::min(database.spilled, note.wake_at);
        return;
    }
    lane->mark = std::min(lane->mark, note.wake_at);
    lane->noted = std::min(lane->noted, note.wake_at);
    lane->noted_fire = std::min(lane->noted_fire, note.fire_at);
    if (note.wake_at != core::never) lane->publications++;
    list(database, *lane);
}

void add_counts(SharedDatabase& database, std::string_view name, const core::LaneCounts& counts) {
    SharedLane* lane = open_lane(database.oid, name);
    (lane == nullptr ? database.unplaced : lane->counts).add(counts);
}

SharedDatabase* own_database() { return find_database(MyDatabaseId); }

// Something else than timers is to be seen to.
bool is_disturbed(const SharedDatabase& database) {
    return database.leaving > 0 || database.settings_changed || database.extension_changed || database.look_everywhere;
}

bool holds_news(const SharedDatabase& database) {
    return is_disturbed(database) || database.noted_lanes != nullptr || database.noted_lease != core::never ||
           database.spilled != core::never || database.touched;
}

}  // namespace

void publish(const Message& message) noexcept {
    if (!available() || !OidIsValid(MyDatabaseId)) return;
    const bool extension_changed = message.extension_changed && !message.rolled_back;
    const SharedLock lock;
    // Without a place there is no dispatcher, and one that starts scans from the safe mark.
    SharedDatabase* database = extension_changed ? open_database(MyDatabaseId) : own_database();
    if (database == nullptr) return;

    // A prepared transaction may have created the extension.
    if ((extension_changed || message.prepared_finished) && database->presence == Presence::absent)
        database->presence = Presence::unknown;
    if (database->presence == Presence::unknown) wake_launcher();
    database->extension_changed |= extension_changed;
    database->look_everywhere |= message.prepared_finished;
    database->touched |= message.notes->touched();

    bool awaited = extension_changed || message.prepared_finished ||
                   (message.notes->touched() && database->passed_over);
    if (!message.rolled_back) {
        message.counts->each([=](const std::string& name, const core::LaneCounts& counts) {
            add_counts(*database, name, counts);
        });
        Instant soonest = message.lease;
        for (const auto& [name, note] : message.notes->lanes()) {
            leave_note(*database, name, note);
            soonest = std::min(soonest, note.fire_at);
        }
        database->noted_lease = std::min(database->noted_lease, message.lease);
        database->settings_changed |= message.settings_changed;
        awaited |= soonest < database->deadline || message.settings_changed;
    }
    if (awaited && database->dispatcher_latch != nullptr) SetLatch(database->dispatcher_latch);
}

bool read_floor(Instant& floor) {
    if (!available()) return false;
    const SharedLock lock;
    const SharedDatabase* database = own_database();
    if (database == nullptr || database->floor == core::distant_past) return false;
    floor = database->floor;
    return true;
}

TakenNotes begin_pass() {
    TakenNotes taken;
    const SharedLock lock;
    SharedDatabase* database = own_database();
    if (database == nullptr) return taken;
    database->deadline = core::never;
    database->passed_over = true;
    ResetLatch(MyLatch);
    for (SharedLane* lane = database->noted_lanes; lane != nullptr; lane = lane->next_noted) {
        taken.lanes.push_back({lane->key.name, lane->noted_fire, lane->unstored});
        lane->noted = lane->noted_fire = core::never;
        lane->listed = false;
    }
    database->noted_lanes = nullptr;
    taken.lease = std::exchange(database->noted_lease, core::never);
    taken.spilled = std::exchange(database->spilled, core::never);
    taken.touched = std::exchange(database->touched, false);
    taken.settings_changed = std::exchange(database->settings_changed, false);
    taken.look_everywhere = std::exchange(database->look_everywhere, false);
    return taken;
}

Instant soonest_note(const std::vector<std::string_view>& but_for) {
    const SharedLock lock;
    const SharedDatabase* database = own_database();
    if (database == nullptr || is_disturbed(*database)) return core::distant_past;
    Instant soonest = std::min(database->noted_lease, database->spilled);
    for (const SharedLane* lane = database->noted_lanes; lane != nullptr; lane = lane->next_noted)
        if (std::find(but_for.begin(), but_for.end(), lane->key.name) == but_for.end())
            soonest = std::min(soonest, lane->noted_fire);
    return soonest;
}

Instant end_pass(Instant deadline, bool passed_over, const PassCount& count) {
    const SharedLock lock;
    SharedDatabase* database = own_database();
    if (database == nullptr) return deadline;
    if (holds_news(*database)) deadline = core::distant_past;
    database->deadline = std::min(deadline, core::never - 1);
    database->passed_over = passed_over;
    database->wakeups++;
    database->passes += count.worked ? 1 : 0;
    if (count.worked) database->pass_time.observe(count.took);
    database->fired += static_cast<std::uint64_t>(count.fired);
    return deadline;
}

void set_armed(bool armed) {
    const SharedLock lock;
    if (SharedDatabase* database = own_database()) database->unarmed = !armed;
}

void set_failing(std::string_view name, bool failing) {
    const SharedLock lock;
    if (SharedLane* lane = find_lane(MyDatabaseId, name)) lane->failing = failing;
}

bool is_failing(std::string_view name) {
    if (!available()) return false;
    const SharedLock lock;
    const SharedLane* lane = find_lane(MyDatabaseId, name);
    return lane != nullptr && lane->failing;
}

Instant raise_floor(Instant clock) {
    const SharedLock lock;
    SharedDatabase* database = own_database();
    if (database == nullptr) return clock;
    database->floor = std::max(database->floor, clock);
    return database->floor;
}

ScanStart scan_start(std::string_view name) {
    if (!available()) return {};
    const SharedLock lock;
    const SharedLane* lane = find_lane(MyDatabaseId, name);
    if (lane != nullptr) return {true, lane->mark, lane->publications};
    const SharedDatabase* database = own_database();
    return {false, database == nullptr ? core::distant_past : database->spilled, 0};
}

void note_next_look(std::string_view name, Instant at) {
    if (at == core::never) return;
    const SharedLock lock;
    SharedDatabase* database = own_database();
    if (database == nullptr) return;
    leave_note(*database, name, {core::never, at});
    if (at < database->deadline && database->dispatcher_latch != nullptr) SetLatch(database->dispatcher_latch);
}

void set_first_mark(std::string_view name, Instant stored) {
    const SharedLock lock;
    SharedLane* lane = open_lane(MyDatabaseId, name);
    if (lane != nullptr && lane->mark == core::distant_past) lane->mark = std::min(stored, lane->noted);
}

void raise_mark_of_dispatcher(std::string_view name, Instant mark) {
    const SharedLock lock;
    SharedLane* lane = find_lane(MyDatabaseId, name);
    if (lane != nullptr) lane->mark = std::max(lane->mark, std::min(mark, lane->noted));
}

void raise_mark(std::string_view name, Instant mark, const ScanStart& since) {
    if (!available()) return;
    const SharedLock lock;
    SharedLane* lane = find_lane(MyDatabaseId, name);
    if (lane == nullptr || lane->publications != since.publications || mark <= lane->mark) return;
    lane->mark = mark;
    // The dispatcher stores it, in a while; once told it keeps that in mind.
    SharedDatabase* database = own_database();
    if (lane->unstored || database == nullptr) return;
    lane->unstored = true;
    list(*database, *lane);
    if (database->dispatcher_latch != nullptr) SetLatch(database->dispatcher_latch);
}

void set_stored(std::string_view name) {
    const SharedLock lock;
    if (SharedLane* lane = find_lane(MyDatabaseId, name)) lane->unstored = false;
}

}  // namespace engine

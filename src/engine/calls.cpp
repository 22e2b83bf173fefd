#include "engine/calls.hpp"

#include <algorithm>

#include "pg/clock.hpp"

namespace engine {

int max_handler_workers = 4;

int handlers_at_work(const SharedDatabase& database) {
    return static_cast<int>(std::count_if(std::begin(database.handlers), std::end(database.handlers),
                                          [](const HandlerPlace& place) { return place.pid != 0; }));
}

bool is_handler(const SharedDatabase& database, int pid) {
    return std::any_of(std::begin(database.handlers), std::end(database.handlers),
                       [=](const HandlerPlace& place) { return place.pid == pid; });
}

namespace {

HandlerPlace* own_place(SharedDatabase& database) {
    for (HandlerPlace& place : database.handlers)
        if (place.pid == MyProcPid) return &place;
    return nullptr;
}

void append(SharedDatabase& database, SharedLane& lane) {
    lane.next_called = nullptr;
    SharedLane** end = &database.called_lanes;
    while (*end != nullptr) end = &(*end)->next_called;
    *end = &lane;
}

void unlink(SharedDatabase& database, SharedLane& lane) {
    SharedLane** link = &database.called_lanes;
    while (*link != nullptr && *link != &lane) link = &(*link)->next_called;
    if (*link != nullptr) *link = lane.next_called;
    lane.next_called = nullptr;
}

bool rests(const SharedLane& lane) {
    return lane.rests_until != core::distant_past && pg::wall_clock() < lane.rests_until;
}

// A lane that has workers already leaves the last one to the others: handlers that hang hold up their own lane alone.
bool is_open(const SharedDatabase& database, const SharedLane& lane) {
    if (rests(lane)) return false;
    if (lane.max_concurrent > 0 && lane.running >= lane.max_concurrent) return false;
    const auto busy = std::count_if(std::begin(database.handlers), std::end(database.handlers),
                                    [](const HandlerPlace& place) { return place.lane != nullptr; });
    return lane.running == 0 || busy + 1 < max_handler_workers;
}

SharedLane* next_open_lane(const SharedDatabase& database) {
    for (SharedLane* lane = database.called_lanes; lane != nullptr; lane = lane->next_called)
        if (is_open(database, *lane)) return lane;
    return nullptr;
}

// Somebody should look at the called lanes.
void rouse(SharedDatabase& database) {
    for (HandlerPlace& place : database.handlers) {
        if (place.pid == 0 || !place.idle) continue;
        place.idle = false;
        SetLatch(place.latch);
        return;
    }
    if (handlers_at_work(database) < max_handler_workers) wake_launcher();
}

}  // namespace

std::optional<Instant> call_lane(std::string_view name, int max_concurrent) {
    const SharedLock lock;
    SharedDatabase* database = find_database(MyDatabaseId);
    SharedLane* lane = database == nullptr ? nullptr : open_lane(MyDatabaseId, name);
    if (lane == nullptr) return std::nullopt;
    lane->calls++;
    lane->max_concurrent = max_concurrent;
    if (!lane->called) {
        lane->called = true;
        append(*database, *lane);
    }
    if (rests(*lane)) return lane->rests_until;
    rouse(*database);
    return core::never;
}

bool join_handlers() {
    const SharedLock lock;
    SharedDatabase* database = find_database(MyDatabaseId);
    if (database == nullptr || database->leaving > 0 || handlers_at_work(*database) >= max_handler_workers) return false;
    for (HandlerPlace& place : database->handlers) {
        if (place.pid != 0) continue;
        place = {MyProcPid, MyLatch, nullptr, false};
        database->handlers_joined++;
        return true;
    }
    return false;
}

void leave_handlers() noexcept {
    const SharedLock lock;
    SharedDatabase* database = find_database(MyDatabaseId);
    HandlerPlace* place = database == nullptr ? nullptr : own_place(*database);
    if (place == nullptr) return;
    if (place->lane != nullptr) place->lane->running--;
    *place = HandlerPlace{};
    // What it leaves behind may be for another.
    if (next_open_lane(*database) != nullptr) rouse(*database);
    wake_launcher();
}

bool leave_if_surplus() {
    const SharedLock lock;
    SharedDatabase* database = find_database(MyDatabaseId);
    HandlerPlace* place = database == nullptr ? nullptr : own_place(*database);
    if (place == nullptr || handlers_at_work(*database) <= max_handler_workers) return false;
    *place = HandlerPlace{};
    return true;
}

std::optional<Turn> take_turn() {
    Turn turn;
    {
        const SharedLock lock;
        SharedDatabase* database = find_database(MyDatabaseId);
        HandlerPlace* place = database == nullptr ? nullptr : own_place(*database);
        if (place == nullptr) return std::nullopt;
        ResetLatch(MyLatch);
        SharedLane* lane = next_open_lane(*database);
        place->idle = lane == nullptr;
        if (lane == nullptr) return std::nullopt;
        unlink(*database, *lane);
        append(*database, *lane);
        lane->running++;
        place->lane = lane;
        turn.calls = lane->calls;
        turn.lane.reserve(longest_lane_name);
        turn.lane = lane->key.name;
        // Other lanes wait, too.
        const SharedLane* other = next_open_lane(*database);
        if (other != nullptr && other != lane) rouse(*database);
    }
    return turn;
}

bool turn_goes_on() {
    const SharedLock lock;
    SharedDatabase* database = find_database(MyDatabaseId);
    const HandlerPlace* place = database == nullptr ? nullptr : own_place(*database);
    if (place == nullptr || place->lane == nullptr || database->leaving > 0) return false;
    const SharedLane& own = *place->lane;
    if (own.max_concurrent > 0 && own.running > own.max_concurrent) return false;
    if (handlers_at_work(*database) > max_handler_workers) return false;
    for (const SharedLane* lane = database->called_lanes; lane != nullptr; lane = lane->next_called)
        if (lane != &own && is_open(*database, *lane)) return false;
    return true;
}

void ask_for_help() {
    const SharedLock lock;
    SharedDatabase* database = find_database(MyDatabaseId);
    if (database != nullptr && next_open_lane(*database) != nullptr) rouse(*database);
}

Instant end_turn(const Turn& turn, TurnEnd end) {
    const SharedLock lock;
    SharedDatabase* database = find_database(MyDatabaseId);
    HandlerPlace* place = database == nullptr ? nullptr : own_place(*database);
    if (place == nullptr || place->lane == nullptr) return core::never;
    SharedLane& lane = *place->lane;
    place->lane = nullptr;
    lane.running--;
    if (end == TurnEnd::failed) {
        // Of several workers that fail together the first decides.
        if (!rests(lane)) lane.rests_until = core::later_by(pg::wall_clock(), lane.failures.fail());
        return lane.rests_until;
    }
    lane.failures.succeed();
    if (end == TurnEnd::drained && lane.called && lane.calls == turn.calls) {
        lane.called = false;
        unlink(*database, lane);
    }
    return core::never;
}

bool handler_wanted(const SharedDatabase& database) {
    if (database.leaving > 0 || handlers_at_work(database) >= max_handler_workers) return false;
    const bool idle = std::any_of(std::begin(database.handlers), std::end(database.handlers),
                                  [](const HandlerPlace& place) { return place.pid != 0 && place.idle; });
    return !idle && next_open_lane(database) != nullptr;
}

}  // namespace engine

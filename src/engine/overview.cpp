#include "engine/overview.hpp"

#include <algorithm>
#include <map>

#include "engine/calls.hpp"
#include "engine/dispatcher_state.hpp"
#include "engine/session_lanes.hpp"
#include "store/glance.hpp"

namespace engine {

namespace {

// How many rows the whole of a look reads at most, give or take the lanes beyond a hundred.
constexpr std::int64_t rows_ahead = 10'000;
constexpr std::int64_t most_behind = 10'000;
constexpr std::int64_t least_ahead = 100;
constexpr std::int64_t most_claims = 10'000;
constexpr std::int64_t most_dead = 10'000;
constexpr std::int64_t pages_of_a_sample = 256;

using Lanes = std::map<std::string, LaneOverview*, std::less<>>;

// What is behind is what is overdue: little, unless something is wrong, and then worth counting further.
std::vector<store::LaneReach> reaches(const std::vector<SessionLane>& lanes) {
    const std::int64_t ahead =
        std::max(least_ahead, rows_ahead / std::max<std::int64_t>(1, static_cast<std::int64_t>(lanes.size())));
    const std::int64_t behind = std::min(most_behind, 10 * ahead);
    std::vector<store::LaneReach> reaches;
    for (const SessionLane& lane : lanes) reaches.push_back({lane.name, lane.from(), behind, ahead});
    return reaches;
}

void count_scheduled(LaneOverview& lane, const store::LaneLook& look) {
    lane.due = {look.due, !look.behind_cut};
    lane.oldest = {look.oldest, !look.behind_cut};
    lane.scheduled = {look.due + look.waiting + look.ahead, !look.behind_cut && !look.ahead_cut};
    lane.next.value = std::min(look.waiting_fire, look.ahead_fire);
    // No row fires before its wake_at: none of those further ahead is earlier than the last that was looked at.
    lane.next.exact = !look.behind_cut && (!look.ahead_cut || lane.next.value <= look.reached);
}

void count_claims(const Lanes& lanes, core::Instant now) {
    const auto take = [&](std::string_view name, const store::LaneClaims& claims) {
        const auto found = lanes.find(name);
        if (found == lanes.end()) return;
        LaneOverview& lane = *found->second;
        lane.firing.value = claims.firing;
        lane.stuck.value = claims.lapsed;
        lane.resuming.value = claims.resuming;
    };
    const bool cut = store::each_lane_claims(now, most_claims, take);
    for (const auto& [name, lane] : lanes)
        lane->firing.exact = lane->stuck.exact = lane->resuming.exact = !cut;
}

void count_dead(const Lanes& lanes) {
    const bool cut = store::each_lane_dead(most_dead, [&](std::string_view name, std::int64_t dead) {
        if (const auto found = lanes.find(name); found != lanes.end()) found->second->dead.value = dead;
    });
    for (const auto& [name, lane] : lanes) lane->dead.exact = !cut;
}

// What was counted stands where the sample found less.
void estimate(const Lanes& lanes) {
    const bool needed = std::any_of(lanes.begin(), lanes.end(), [](const auto& lane) {
        return !lane.second->scheduled.exact || !lane.second->dead.exact;
    });
    if (!needed) return;
    store::each_lane_estimate(pages_of_a_sample, [&](std::string_view name, const store::LaneEstimate& estimate) {
        const auto found = lanes.find(name);
        if (found == lanes.end()) return;
        LaneOverview& lane = *found->second;
        if (!lane.scheduled.exact) lane.scheduled.value = std::max(lane.scheduled.value, estimate.scheduled);
        if (!lane.dead.exact) lane.dead.value = std::max(lane.dead.value, estimate.dead);
    });
}

// What holds for all lanes of the database, and for those that have handlers.
struct Obstacles {
    const char* all = nullptr;
    const char* handlers = nullptr;
};

Obstacles obstacles() {
    Obstacles found;
    SharedDatabase copy{};
    const SharedDatabase* database = nullptr;
    if (available()) {
        const SharedLock lock;
        if (const auto* place = find_database(MyDatabaseId)) {
            copy = *place;
            database = &copy;
        }
    }
    found.all = explanation_of(dispatcher_state(database));
    if (database == nullptr) return found;
    if (max_handler_workers == 0) found.handlers = "durable_timers.handler_workers is 0";
    if (database->handlers_out_of_slots) found.handlers = explanation_of("no worker slot");
    return found;
}

bool has_no_place(std::string_view lane) {
    const SharedLock lock;
    return is_crowded_out(MyDatabaseId, lane);
}

const char* explain(const SessionLane& lane, const Obstacles& obstacles) {
    if (obstacles.all != nullptr) return obstacles.all;
    if (lane.settings.paused) return "it is paused: timers.unpause() lets it fire";
    if (lane.settings.delivery == core::Delivery::external)
        return "workers of your own claim its timers with timers.claim_due()";
    if (lane.settings.delivery == core::Delivery::handler) {
        if (obstacles.handlers != nullptr) return obstacles.handlers;
        if (has_no_place(lane.name)) return "more process managers than durable_timers.max_lanes";
    }
    if (is_failing(lane.name)) return "firing it raised an error, see the log; it is tried again within a minute";
    return nullptr;
}

}  // namespace

std::vector<LaneOverview> look_over(core::Instant now) {
    const std::vector<SessionLane> lanes = all_lanes();
    const Obstacles in_the_way = obstacles();
    std::vector<LaneOverview> overview;
    for (const SessionLane& lane : lanes) {
        LaneOverview line{};
        line.name = lane.name;
        line.delivery = lane.settings.delivery;
        line.paused = lane.settings.paused;
        line.stored = lane.stored;
        line.explanation = explain(lane, in_the_way);
        overview.push_back(std::move(line));
    }

    core::Instant bound = now;
    read_floor(bound);
    const std::vector<store::LaneLook> looks = store::look_at_lanes(reaches(lanes), std::max(bound, now), now);
    Lanes by_name;
    for (std::size_t i = 0; i < overview.size(); i++) {
        count_scheduled(overview[i], looks[i]);
        by_name.emplace(overview[i].name, &overview[i]);
    }
    count_claims(by_name, now);
    count_dead(by_name);
    estimate(by_name);
    return overview;
}

}  // namespace engine

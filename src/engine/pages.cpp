#include "engine/pages.hpp"

#include <algorithm>
#include <iterator>

#include "engine/transaction_end.hpp"
#include "engine/waking.hpp"
#include "pg/clock.hpp"
#include "store/lanes.hpp"

namespace engine {

namespace {

constexpr std::int64_t lanes_at_once = 100;

struct Lane {
    std::string name;
    core::Instant start;
};

// Below it the lane has nothing scheduled, for a snapshot that is taken from now on.
core::Instant start_of(std::string_view lane) {
    // This one was taken before: it may show as scheduled what has fired since.
    if (IsolationUsesXactSnapshot()) return core::distant_past;
    const ScanStart start = scan_start(lane);
    const bool known = start.shared && start.mark != core::distant_past;
    return std::min(known ? start.mark : store::safe_mark(lane), notes().wake_of(lane));
}

std::vector<Lane> next_lanes(const store::PendingFilter& filter, std::string_view first) {
    if (filter.process_manager)
        return {{std::string(*filter.process_manager), start_of(*filter.process_manager)}};
    std::vector<Lane> lanes;
    for (std::string& name : store::lanes_from(first, lanes_at_once)) {
        const core::Instant start = start_of(name);
        lanes.push_back({std::move(name), start});
    }
    return lanes;
}

// What is due before some instant has its wake_at before that, or was scheduled in the past. After the snapshot.
core::Instant bound_of(const store::PendingFilter& filter) {
    if (!filter.due_before) return core::never;
    core::Instant floor = core::distant_past;
    if (!read_floor(floor)) floor = store::highest_safe_mark();
    return std::max({*filter.due_before, floor, pg::wall_clock()});
}

// The keys of some lanes, under one snapshot: those of scheduled timers and of firing ones, in their order.
store::Keys keys_of(const std::vector<Lane>& lanes, const store::PendingFilter& filter, const core::PageKey& after,
                    std::int64_t most) {
    store::Keys firing;
    if (filter.firing) {
        std::vector<std::string_view> names;
        names.reserve(lanes.size());
        for (const Lane& lane : lanes) names.push_back(lane.name);
        firing = store::firing_of(names, filter, after, most);
    }
    store::Keys scheduled;
    const core::Instant bound = bound_of(filter);
    for (const Lane& lane : lanes) {
        const std::int64_t room = most - std::ssize(scheduled);
        if (!filter.scheduled || room == 0) break;
        store::Keys keys = store::scheduled_of(lane.name, lane.start, bound, filter, after, room);
        std::move(keys.begin(), keys.end(), std::back_inserter(scheduled));
    }
    store::Keys keys;
    std::merge(scheduled.begin(), scheduled.end(), firing.begin(), firing.end(), std::back_inserter(keys));
    if (std::ssize(keys) > most) keys.resize(static_cast<std::size_t>(most));
    return keys;
}

void show(const store::Keys& keys, const VisitRow& visit) {
    if (keys.empty()) return;
    std::vector<core::TimerId> ids;
    ids.reserve(keys.size());
    for (const core::PageKey& key : keys) ids.push_back(key.id);
    store::inspect(ids, [&](const pg::Rows& rows, std::uint64_t row, std::size_t place) {
        visit(rows, row, keys[place]);
    });
}

}  // namespace

void inspect(const core::TimerId& id, const VisitRow& visit) {
    const pg::SharedSnapshot snapshot;
    show({{{}, core::distant_past, id}}, visit);
}

void find_pending(const store::PendingFilter& filter, const core::PageKey& after, std::int64_t most,
                  const VisitRow& visit) {
    if (filter.correlation_id) {
        const pg::SharedSnapshot snapshot;
        show(store::pending_of_correlation(filter, after, most), visit);
        return;
    }
    std::string first = after.lane;
    while (most > 0) {
        const std::vector<Lane> lanes = next_lanes(filter, first);
        if (lanes.empty()) return;
        {
            const pg::SharedSnapshot snapshot;
            const store::Keys keys = keys_of(lanes, filter, after, most);
            show(keys, visit);
            most -= std::ssize(keys);
        }
        if (filter.process_manager || std::ssize(lanes) < lanes_at_once) return;
        // The least name behind the last one.
        first = lanes.back().name + '\1';
    }
}

void find_dead(const store::DeadFilter& filter, const core::PageKey& after, std::int64_t most, const VisitRow& visit) {
    const pg::SharedSnapshot snapshot;
    show(store::dead_of(filter, after, most), visit);
}

}  // namespace engine

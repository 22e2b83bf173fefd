#include "engine/lane_registry.hpp"

#include <string>
#include <unordered_set>

#include "pg/locks.hpp"
#include "store/lanes.hpp"
#include "store/values.hpp"

extern "C" {
#include "common/hashfn.h"
}

namespace engine {

namespace {

struct Registry {
    Oid table = InvalidOid;                       // the extension that the names below belong to
    std::unordered_set<std::string> committed;    // have their rows
    std::unordered_set<std::string> ensured;      // taken care of in the transaction under way
};

Registry& registry() {
    static Registry* const lasting = new Registry;
    return *lasting;
}

bool adding = false;

struct Adding {
    Adding() { adding = true; }
    ~Adding() { adding = false; }
};

// A session that meets more names than this asks again now and then.
constexpr std::size_t most_remembered = 10000;

uint32 hash_of(std::string_view lane) {
    return hash_bytes(reinterpret_cast<const unsigned char*>(lane.data()), static_cast<int>(lane.size()));
}

}  // namespace

void lock_lane(std::string_view lane) { pg::lock_name(hash_of(lane)); }

void ensure_lane(std::string_view lane) {
    Registry& known = registry();
    if (const Oid table = store::timer_table(); table != known.table) {
        known.committed.clear();
        known.table = table;
    }
    std::string name(lane);
    if (known.committed.contains(name) || known.ensured.contains(name)) return;

    const store::LaneRow row = store::lane_row(lane);
    if (row == store::LaneRow::committed) {
        if (known.committed.size() >= most_remembered) known.committed.clear();
        known.committed.insert(std::move(name));
        return;
    }
    // The row may have come while we had no lock, hence the second look.
    if (row == store::LaneRow::none && pg::try_lock_name(hash_of(lane)) && store::lane_row(lane) == store::LaneRow::none) {
        const Adding defaults;
        store::insert_lane(lane);
    }
    known.ensured.insert(std::move(name));
}

void forget_ensured_lanes() noexcept { registry().ensured.clear(); }

void forget_committed_lanes() { registry().committed.clear(); }

bool adding_defaults() noexcept { return adding; }

}  // namespace engine

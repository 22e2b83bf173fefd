#include "engine/lane_registry.hpp"

#include <string>
#include <unordered_set>

#include "pg/locks.hpp"
#include "store/lanes.hpp"

extern "C" {
#include "common/hashfn.h"
}

namespace engine {

namespace {

struct Registry {
    std::unordered_set<std::string> committed;    // rows that were there before this process asked
    std::unordered_set<std::string> ensured;      // taken care of in the transaction under way
    bool inserted = false;                        // this transaction added rows: what it sees may be its own
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

}  // namespace

void ensure_lane(std::string_view lane) {
    Registry& known = registry();
    std::string name(lane);
    if (known.committed.contains(name) || known.ensured.contains(name)) return;

    if (store::lane_exists(lane)) {
        if (known.committed.size() >= most_remembered) known.committed.clear();
        (known.inserted ? known.ensured : known.committed).insert(std::move(name));
        return;
    }
    const auto hash = hash_bytes(reinterpret_cast<const unsigned char*>(lane.data()), static_cast<int>(lane.size()));
    // The row may have come while we had no lock, hence the second look.
    if (pg::try_lock_name(hash) && !store::lane_exists(lane)) {
        const Adding row;
        store::insert_lane(lane);
        known.inserted = true;
    }
    known.ensured.insert(std::move(name));
}

bool adding_defaults() noexcept { return adding; }

void forget_ensured_lanes() noexcept {
    registry().ensured.clear();
    registry().inserted = false;
}

}  // namespace engine

#include "engine/shared.hpp"

#include <cstring>

#include "pg/clock.hpp"
#include "pg/shared_memory.hpp"

namespace engine {

int max_databases = 64;
int max_lanes = 4096;

namespace {

struct Header {
    Latch* launcher_latch;
    SharedDatabase databases[1];    // max_databases of them
};

Header* header = nullptr;
LWLock* lock = nullptr;
HTAB* lanes = nullptr;

std::size_t header_size() {
    return offsetof(Header, databases) + static_cast<std::size_t>(max_databases) * sizeof(SharedDatabase);
}

void initialize(void* memory, LWLock* guard) {
    header = static_cast<Header*>(memory);
    lock = guard;
    HASHCTL control{};
    control.keysize = sizeof(LaneKey);
    control.entrysize = sizeof(SharedLane);
    lanes = ShmemInitHash("durable_timers lanes", max_lanes, max_lanes, &control,
                          HASH_ELEM | HASH_BLOBS | HASH_FIXED_SIZE);
}

LaneKey key_of(Oid database, std::string_view name) {
    LaneKey key;
    std::memset(&key, 0, sizeof key);
    key.database = database;
    std::memcpy(key.name, name.data(), name.size());
    return key;
}

}  // namespace

void request_shared() {
    const auto lanes_size = hash_estimate_size(max_lanes, sizeof(SharedLane));
    pg::request_shared_memory("durable_timers", header_size(), lanes_size, initialize);
}

bool available() { return header != nullptr; }

SharedLock::SharedLock() { LWLockAcquire(lock, LW_EXCLUSIVE); }
SharedLock::~SharedLock() { LWLockRelease(lock); }

SharedDatabase* first_database() { return header->databases; }
SharedDatabase* end_of_databases() { return header->databases + max_databases; }

SharedDatabase* find_database(Oid database) {
    for (auto* place = first_database(); place != end_of_databases(); place++)
        if (place->oid == database) return place;
    return nullptr;
}

SharedDatabase* open_database(Oid database) {
    if (auto* found = find_database(database)) return found;
    SharedDatabase* place = find_database(InvalidOid);
    if (place == nullptr) return nullptr;
    *place = SharedDatabase{};
    place->oid = database;
    place->deadline = core::never;
    place->floor = core::distant_past;
    place->noted_lease = core::never;
    place->spilled = core::never;
    place->counted_since = pg::wall_clock();
    return place;
}

void close_database(SharedDatabase& database) {
    HASH_SEQ_STATUS scan;
    hash_seq_init(&scan, lanes);
    while (auto* lane = static_cast<SharedLane*>(hash_seq_search(&scan)))
        if (lane->key.database == database.oid) hash_search(lanes, &lane->key, HASH_REMOVE, nullptr);
    database = SharedDatabase{};
}

SharedLane* find_lane(Oid database, std::string_view name) {
    const LaneKey key = key_of(database, name);
    return static_cast<SharedLane*>(hash_search(lanes, &key, HASH_FIND, nullptr));
}

SharedLane* open_lane(Oid database, std::string_view name) {
    const LaneKey key = key_of(database, name);
    bool found = false;
    auto* lane = static_cast<SharedLane*>(hash_search(lanes, &key, HASH_ENTER_NULL, &found));
    if (lane != nullptr && !found) {
        *lane = SharedLane{};
        lane->key = key;
        lane->mark = core::distant_past;
        lane->noted = lane->noted_fire = core::never;
        lane->rests_until = core::distant_past;
    }
    return lane;
}

bool is_crowded_out(Oid database, std::string_view name) {
    return hash_get_num_entries(lanes) >= max_lanes && find_lane(database, name) == nullptr;
}

void set_launcher_latch(Latch* latch) { header->launcher_latch = latch; }

bool has_launcher() { return header->launcher_latch != nullptr; }

void wake_launcher() {
    if (header->launcher_latch != nullptr) SetLatch(header->launcher_latch);
}

}  // namespace engine

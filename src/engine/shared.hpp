// What the processes share about each database and each lane, and the lock that guards it. Only here while the
// library is preloaded; everything else has to do without when available() is false.
//
// A lane's mark: no committed scheduled row of the lane lies below it. Writers lower it when they publish their
// notes, whoever scanned raises it after the commit. It is distant_past until a dispatcher has read the stored
// safe mark.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/backoff.hpp"
#include "core/instant.hpp"
#include "core/lane_counts.hpp"
#include "pg/server.hpp"

namespace engine {

using core::Instant;

inline constexpr std::size_t longest_lane_name = 255;

struct LaneKey {
    Oid database;
    char name[longest_lane_name + 1];    // padded with zeros
};

struct SharedLane {
    LaneKey key;
    Instant mark;
    Instant noted;                // the lowest wake_at published since the dispatcher last took the notes
    Instant noted_fire;           // the earliest fire_at, likewise
    std::uint64_t publications;   // how often a note was published, ever
    SharedLane* next_noted;       // the database's list of lanes with notes
    bool listed;
    bool unstored;                // its mark was raised by others than the dispatcher since it was stored

    // Handler workers only; see calls.hpp.
    bool called;                  // something is due, as far as is known
    std::uint64_t calls;          // how often it was called, ever
    SharedLane* next_called;      // the database's list of called lanes
    int max_concurrent;           // 0: no limit
    int running;                  // handler workers that have their turn at it
    Instant rests_until;          // its timers could not be claimed: it gets no turn before
    core::Backoff failures{core::second, core::minute};

    // For those who watch.
    bool failing;                 // its last firing raised an error, and it waits to be tried again
    core::LaneCounts counts;      // of committed transactions
};

// A handler worker.
struct HandlerPlace {
    int pid;                      // 0: a free place
    Latch* latch;
    SharedLane* lane;             // its turn
    bool idle;
};
inline constexpr int most_handler_workers = 32;

// What the launcher knows of a database.
enum class Presence : std::uint8_t {
    unknown,      // not looked at since the server started or the extension came or went
    absent,       // no extension there
    present,      // its dispatcher runs or is to be started
};

struct SharedDatabase {
    Oid oid;                      // InvalidOid: a free place
    Presence presence;
    int leaving;                  // commands under way that need the database free of workers
    bool out_of_slots;            // no worker slot was free for its dispatcher, more than once
    bool handlers_out_of_slots;   // likewise for a handler worker that it wants

    bool unarmed;                 // its timers wait for timers.arm()
    int dispatcher_pid;           // 0: none runs
    Latch* dispatcher_latch;
    Instant started_at;
    Instant deadline;             // the dispatcher sleeps until then; never: it looks at every note
    bool passed_over;             // its last pass passed over locked rows
    Instant floor;                // the highest clock taken for a mark; distant_past: not known yet
    SharedLane* noted_lanes;
    Instant noted_lease;          // the lowest lease_until published since the dispatcher last took the notes
    Instant spilled;              // as noted, for lanes that found no place
    bool touched;                 // a transaction that wrote or locked timers ended
    HandlerPlace handlers[most_handler_workers];
    std::uint64_t handlers_joined;    // how many, ever
    SharedLane* called_lanes;

    bool settings_changed;
    bool extension_changed;
    bool look_everywhere;         // a prepared transaction was finished

    Instant counted_since;
    std::uint64_t passes;         // that ran a transaction
    std::uint64_t wakeups;
    std::uint64_t fired;
    core::SpanHistogram pass_time;
    core::LaneCounts unplaced;    // of lanes that found no place
};

// How many handler workers a database may have.
extern int max_handler_workers;

// Settings of the server's start.
extern int max_databases;
extern int max_lanes;

// To be called from _PG_init while the server preloads libraries.
void request_shared();

bool available();

// The exclusive lock on all of it, while it lives. Nothing that can raise an error runs under it.
class SharedLock {
public:
    SharedLock();
    ~SharedLock();
    SharedLock(const SharedLock&) = delete;
    SharedLock& operator=(const SharedLock&) = delete;
};

// The rest under the lock.

// The database's place; nullptr when it has none.
SharedDatabase* find_database(Oid database);
// Opens a place if need be; nullptr when all are taken.
SharedDatabase* open_database(Oid database);
// Forgets a database and its lanes.
void close_database(SharedDatabase& database);
// All places, free ones included.
SharedDatabase* first_database();
SharedDatabase* end_of_databases();

SharedLane* find_lane(Oid database, std::string_view name);
// Opens a place if need be; nullptr when all are taken.
SharedLane* open_lane(Oid database, std::string_view name);
// Whether the lane has no place because all are taken.
bool is_crowded_out(Oid database, std::string_view name);

// The launcher's latch, if one runs.
void set_launcher_latch(Latch* latch);
void wake_launcher();
// It has none when the server shuts down.
bool has_launcher();

}  // namespace engine

// The dispatcher's book of lanes: what each lane is set to, and when it is next worth a look. Decides which
// lanes a pass serves and with what share, how far a scan lets the lane's mark move, and when to wake next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/backoff.hpp"
#include "core/delivery.hpp"
#include "core/instant.hpp"
#include "core/retention_plan.hpp"

namespace core {

struct LaneSettings {
    Delivery delivery = Delivery::outbox;
    std::optional<std::string> channel;
    std::optional<int> max_attempts;
    std::int64_t lease = 5 * minute;
    std::optional<std::int64_t> retention;    // for ever without
    int max_concurrent = 0;    // handlers only; 0: any number
    bool paused = false;

    bool operator==(const LaneSettings&) const = default;
};

// What one scan of a lane found between its start and its bound.
struct LaneScan {
    bool refused = false;            // the lane is not what it was taken for: nothing was scanned
    bool full = false;               // it stopped at the lane's share of rows, not at the bound
    std::int64_t fired = 0;          // rows delivered
    std::int64_t killed = 0;         // rows dead at the attempt ceiling
    std::int64_t rearmed = 0;        // rows postponed since they were written: looked at again at fire_at
    Instant last_wake = distant_past;    // the highest wake_at seen
    Instant passed_over = never;     // the lowest wake_at of a row that somebody held locked
    Instant waiting_wake = never;    // the lowest wake_at of a row that was seen but is not due
    Instant waiting_fire = never;    // the earliest fire_at of such a row
    std::int64_t skipped = 0;        // rows that somebody held locked, or had just changed

    bool found_something() const {
        return full || fired + killed + rearmed > 0 || passed_over != never || waiting_fire != never;
    }
};

struct Lane {
    explicit Lane(std::string_view lane_name) : name(lane_name) {}

    const std::string name;
    LaneSettings settings;
    bool known = false;              // its settings have been read
    Instant next = distant_past;     // when to look at it next
    Instant mark = distant_past;     // as in shared memory; counts where the lane found no place there
    Instant resume = distant_past;   // where the pass under way has got to, as far as it may commit
    std::int64_t share = 0;          // rows it may take in the pass under way
    std::int64_t widening = 1;       // factor on its share while rows that cannot be taken fill all of it
    bool backlog = false;            // the last scan left rows that are due
    std::int64_t limit = no_limit;   // on its share while a row that raises errors is looked for
    static constexpr std::int64_t no_limit = INT64_MAX;
    RetentionPlan retention;
    Backoff locked{10 * millisecond, second};
    Backoff failed{second, minute};

    // Whether the dispatcher looks after this lane's timers.
    bool served() const { return !settings.paused && settings.delivery != Delivery::external; }
};

// How far the mark of a lane may move after a scan up to `bound` was committed: nothing scheduled is left below.
Instant mark_after(const LaneScan& scan, Instant bound);

class LaneBook {
public:
    // Whom a pass may serve.
    enum class Whose { all, without_backlog };

    // No share is smaller: what a scan costs as such must be worth it.
    static constexpr std::int64_t least_share = 10;

    // Finds the lane or opens a page for it, to be looked at soon.
    Lane& lane(std::string_view name);

    // Every lane, in the order of names.
    std::map<std::string, Lane, std::less<>>& lanes() { return lanes_; }
    const std::map<std::string, Lane, std::less<>>& lanes() const { return lanes_; }

    void set(Lane& lane, LaneSettings settings);
    // Back to the defaults, and to not knowing.
    void reset(Lane& lane);

    // The lane has nothing, and never had.
    void forget(Lane& lane);

    // The lane is worth a look at `at` or earlier.
    void wake(Lane& lane, Instant at);
    void wake_all();
    // Transactions ended that may have held the rows which scans passed over.
    void wake_locked(Instant at);

    // Up to `most` lanes to be served now, those that waited longest first, each with its share of `budget` rows.
    std::vector<Lane*> due(Instant now, std::size_t most, std::int64_t budget, Whose whose = Whose::all);

    // A scan has been committed; `ahead` is the lane's next wake_at beyond the scan's bound, or `never`.
    void scanned(Lane& lane, const LaneScan& scan, Instant now, Instant ahead);

    // Firing the lane raised an error. When a row of it is to blame, it is looked for at once, in ever smaller shares;
    // otherwise the lane is left alone for a while.
    void failed(Lane& lane, Instant now, bool row_to_blame);

    // When the next lane is worth a look; the same without those that have a backlog.
    Instant deadline() const;
    Instant deadline_without_backlog() const;

    // Whether the last scan of some lane passed over rows that were locked.
    bool passed_over() const { return passed_over_ > 0; }

private:
    void schedule(Lane& lane, Instant at);
    void note_locked(Lane& lane, bool locked);

    std::map<std::string, Lane, std::less<>> lanes_;
    std::set<std::pair<Instant, Lane*>> queue_;    // the served lanes by `next`
    std::size_t passed_over_ = 0;
};

}  // namespace core

// The policy of a database's dispatcher: which lanes a pass serves, how far marks rise, when to wake. It runs no
// SQL of its own and never waits; workers/dispatcher.cpp drives it, in this order:
//
//   open()        notes are taken, and from here every note sets the latch      (no transaction)
//   work()        scans and fires                                               (in one transaction)
//   committed()   only now marks rise                                           (after its commit)
//   close()       the deadline is published                                     (no transaction)
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/backoff.hpp"
#include "core/lane_book.hpp"
#include "core/pace.hpp"
#include "engine/safe_marks.hpp"
#include "engine/waking.hpp"
#include "store/firing.hpp"
#include "store/settings.hpp"

namespace engine {

class Dispatch {
public:
    Dispatch();

    // Reads marks, settings and lanes; in a transaction, before the first pass.
    void start();

    // The server's settings have been read anew: what process managers leave open may be something else.
    void reload();

    void open();
    bool has_work() const;
    void work();
    void committed();
    void close();

    // Whether this database's timers fire by themselves.
    bool armed() const { return armed_; }

    // When the next pass is due, unless the latch is set before.
    core::Instant deadline() const { return deadline_; }

private:
    // The server's settings that stand in the book for what process managers leave open.
    struct Defaults {
        std::int64_t lease = store::default_lease();
        std::optional<std::int64_t> retention = store::default_retention();
        bool operator==(const Defaults&) const = default;
    };

    struct Serving {
        core::Lane* lane;
        core::LaneScan scan;
        bool failed;
        bool row_to_blame;
        core::Instant ahead;
    };

    void look_whether_armed();
    void read_settings();
    void learn(core::Lane& lane);
    bool nobody_expected(core::Instant now) const;
    std::vector<core::Lane*> lanes_due(core::Instant now, std::int64_t budget);
    void serve_in_portions(const std::vector<core::Lane*>& due, const store::PassClock& clock, std::int64_t batch);
    void serve_all(const std::vector<core::Lane*>& lanes, const store::PassClock& clock);
    void serve(core::Delivery delivery, const std::vector<core::Lane*>& lanes, const store::PassClock& clock);
    void note_served(core::Lane& lane, const core::LaneScan& scan);
    std::vector<core::Lane*> with_more() const;
    std::vector<core::LaneScan> fire(core::Delivery delivery, const std::vector<core::Lane*>& lanes,
                                     const store::PassClock& clock);
    void call_handlers(core::Lane& lane);
    static bool has_timers(const Serving& serving);
    void ring_doorbells() const;
    void end_leases(core::Instant now);
    void sweep(core::Instant now);
    core::Lane* lane_to_sweep(core::Instant now);
    core::Instant start_of(const core::Lane& lane) const;

    const std::string identity_;
    bool armed_ = true;                    // false: this database is a copy, and waits for timers.arm()
    core::LaneBook book_;
    Defaults defaults_;
    SafeMarks safe_marks_;
    std::vector<Serving> served_;          // in the pass under way
    std::int64_t rows_ = 0;                // that it has moved
    core::Pace pace_;
    bool holding_ = false;                 // the backlog waits for somebody who will be due in a moment
    bool backlog_served_ = false;          // by the last pass
    core::Instant others_seen_ = core::distant_past;    // when somebody was last due beside a backlog
    std::int64_t work_ended_ = 0;
    core::Instant bound_ = core::distant_past;
    core::Instant deadline_ = core::distant_past;
    core::Instant next_lease_ = core::distant_past;
    core::Instant lease_mark_ = core::distant_past;    // no unexpired claim that counts ends before
    core::Instant high_clock_ = core::distant_past;    // the highest wall clock seen, or that ought to have been
    core::Instant last_wall_ = core::distant_past;
    std::int64_t last_monotonic_ = 0;
    core::Backoff prepared_{core::second, core::minute};
    core::Instant next_sweep_ = core::distant_past;
    core::Lane* swept_lane_ = nullptr;                 // in the pass under way
    core::Sweep sweep_;
    bool prepared_seen_ = false;                       // by the last scan
    core::Instant prepared_due_ = core::distant_past;  // while it was: look everywhere again then
    bool everywhere_ = false;                          // the next pass looks at every lane
    bool settings_stale_ = false;
    bool lanes_stale_ = false;
    PassCount count_{};
};

}  // namespace engine

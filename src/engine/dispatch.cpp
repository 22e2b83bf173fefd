#include "engine/dispatch.hpp"

#include <algorithm>

#include "engine/lane_registry.hpp"
#include "engine/waking.hpp"
#include "pg/clock.hpp"
#include "pg/extension.hpp"
#include "pg/locks.hpp"
#include "pg/log.hpp"
#include "pg/transaction.hpp"
#include "store/arming.hpp"
#include "store/lanes.hpp"
#include "store/settings.hpp"
#include "store/values.hpp"

namespace engine {

namespace {

// How much larger a transaction may be while nobody else is expected, and how long after somebody is.
constexpr std::int64_t batches_alone = 8;
constexpr std::int64_t expected_for = core::minute;
constexpr std::int64_t between_sweeps = core::minute;
// A clock that runs this much behind the monotonic one has been set back.
constexpr std::int64_t jump = core::second;

}  // namespace

Dispatch::Dispatch() : identity_(store::own_identity()) {}

void Dispatch::start() {
    // Writers that started before the floor was known have read the stored marks instead.
    raise_floor(std::max(store::highest_safe_mark(), core::distant_past + 1));
    read_settings();
    store::each_lane_with_timers([this](std::string_view lane) {
        book_.lane(lane);
        set_failing(lane, false);
    });
    // After the lanes: if they are a restore's, what came with them shows by now, and it brings the rows itself.
    look_whether_armed();
    if (armed_)
        for (const auto& [name, lane] : book_.lanes())
            if (!lane.known) ensure_lane(name);
    store::each_safe_mark([this](std::string_view name, core::Instant safe_at) {
        set_first_mark(name, safe_at);
        book_.lane(name).mark = safe_at;
    });
}

void Dispatch::look_whether_armed() {
    const bool armed = store::is_armed();
    if (armed_ && !armed)
        pg::warn("the timers of database \"" + pg::own_database() + "\" do not fire: they were restored, cloned or upgraded",
                 nullptr, "If they are to fire here, call timers.arm() in that database.");
    if (!armed_ && armed) {
        pg::log("database \"" + pg::own_database() + "\" is armed, its timers fire");
        everywhere_ = true;
    }
    armed_ = armed;
    set_armed(armed);
}

void Dispatch::read_settings() {
    settings_stale_ = false;
    defaults_ = Defaults();
    for (auto& [name, lane] : book_.lanes()) lane.known = false;
    store::each_lane_settings([this](std::string_view name, core::LaneSettings settings) {
        book_.set(book_.lane(name), std::move(settings));
    });
    // Whose row is gone is back to the defaults, and gets a row again with its next timer.
    forget_committed_lanes();
    for (auto& [name, lane] : book_.lanes())
        if (!lane.known) book_.reset(lane);
}

void Dispatch::learn(core::Lane& lane) {
    if (lane.known) return;
    // Until its row is there the lane has the defaults.
    if (auto settings = store::lane_settings(lane.name)) book_.set(lane, std::move(*settings));
}

void Dispatch::reload() { settings_stale_ |= Defaults() != defaults_; }

void Dispatch::open() {
    const core::Instant wall = pg::wall_clock();
    const std::int64_t monotonic = pg::monotonic_clock();
    const core::Instant expected = last_wall_ == core::distant_past ? wall : last_wall_ + (monotonic - last_monotonic_);
    const bool set_back = wall < expected - jump;
    if (set_back) pg::log("the clock was set back; timers that are due are looked for ahead of it");
    high_clock_ = std::max({high_clock_, wall, set_back ? expected : wall});
    last_wall_ = wall;
    last_monotonic_ = monotonic;

    served_.clear();
    rows_ = 0;
    swept_lane_ = nullptr;
    count_ = {};
    TakenNotes taken = begin_pass();
    for (const NotedLane& note : taken.lanes) {
        book_.wake(book_.lane(note.name), note.fire_at);
        if (note.mark_moved) safe_marks_.moved(note.name);
    }
    lease_mark_ = std::min(lease_mark_, taken.lease);
    next_lease_ = std::min(next_lease_, taken.lease);
    settings_stale_ |= taken.settings_changed || taken.look_everywhere;
    if (taken.spilled != core::never)
        for (auto& [name, lane] : book_.lanes()) lane.mark = std::min(lane.mark, taken.spilled);
    if (taken.touched) book_.wake_locked(wall);
    if (prepared_seen_ && wall >= prepared_due_) {
        everywhere_ = true;
        prepared_due_ = core::later_by(wall, prepared_.fail());
    }
    everywhere_ |= taken.look_everywhere || taken.spilled != core::never || set_back;
    if (std::exchange(everywhere_, false)) {
        book_.wake_all();
        lanes_stale_ = true;
        next_lease_ = lease_mark_ = core::distant_past;
    }
    holding_ = book_.deadline() <= wall && pace_.hold(wall, book_.deadline_without_backlog());
}

bool Dispatch::has_work() const {
    const core::Instant now = last_wall_;
    if (!armed_) return settings_stale_ || next_lease_ <= now;
    return settings_stale_ || lanes_stale_ || (!holding_ && book_.deadline() <= now) || next_lease_ <= now ||
           safe_marks_.due() <= now || next_sweep_ <= now;
}

core::Instant Dispatch::start_of(const core::Lane& lane) const {
    const ScanStart start = scan_start(lane.name);
    return std::max(start.shared ? start.mark : lane.mark, lane.resume);
}

void Dispatch::work() {
    if (settings_stale_) {
        look_whether_armed();
        read_settings();
    }
    const core::Instant now = pg::wall_clock();
    if (!armed_) {
        end_leases(now);
        return;
    }
    if (std::exchange(lanes_stale_, false))
        store::each_lane_with_timers([this](std::string_view lane) { book_.lane(lane); });

    const Oid table = store::timer_table();
    if (safe_marks_.ready(table, now)) {
        pg::show_activity("storing safe marks");
        safe_marks_.store(book_);
    }
    if (next_lease_ <= now) {
        pg::show_activity("ending leases that are over");
        end_leases(now);
    }
    pg::show_activity("firing due timers");

    // Before the snapshot of the scan: what is prepared then may be committed without a note of its own.
    const bool prepared_before = std::exchange(prepared_seen_, pg::prepared_writers(table));
    if (!prepared_seen_) prepared_.succeed();
    // Lanes that are not due now may have been scanned while the last of them was still prepared.
    everywhere_ |= prepared_before && !prepared_seen_;

    high_clock_ = std::max(high_clock_, now);
    bound_ = std::max(raise_floor(core::distant_past), high_clock_);
    const store::PassClock clock{now, bound_, now};
    const bool alone = nobody_expected(now);
    const std::int64_t batch = store::batch_size();
    const std::vector<core::Lane*> due = lanes_due(now, std::min(pace_.portion(alone), batch));
    for (core::Lane* lane : due) {
        learn(*lane);
        lane->resume = core::distant_past;
    }
    serve_in_portions(due, clock, alone ? batch * batches_alone : batch);
    for (core::Lane* lane : due)
        if (lane->settings.delivery == core::Delivery::handler) call_handlers(*lane);
    ring_doorbells();
    if (due.empty() && !holding_) {
        pg::show_activity("deleting timers whose retention is over");
        sweep(now);
    }

    // Where nothing more is due, see when something will be.
    std::vector<std::string_view> drained;
    for (const Serving& serving : served_)
        if (!serving.failed && !serving.scan.full) drained.push_back(serving.lane->name);
    const std::vector<core::Instant> wakes =
        drained.empty() ? std::vector<core::Instant>{} : store::next_wakes(drained, bound_);
    auto wake = wakes.begin();
    for (Serving& serving : served_)
        if (!serving.failed && !serving.scan.full) serving.ahead = *wake++;

    // Timers that came by COPY or by hand, or beside another transaction that was first and rolled back. Those of a restore
    // have disarmed the database by now, and their rows come, too.
    for (const Serving& serving : served_)
        if (!serving.lane->known && has_timers(serving) && store::is_armed()) ensure_lane(serving.lane->name);
    work_ended_ = pg::monotonic_clock();
}

void Dispatch::committed() {
    count_.worked = true;
    if (rows_ > 0) pace_.committed(pg::monotonic_clock() - work_ended_);
    for (const Serving& serving : served_) serving.lane->resume = core::distant_past;
    if (swept_lane_ != nullptr) {
        swept_lane_->retention.swept(sweep_, last_wall_, *swept_lane_->settings.retention, between_sweeps);
        next_sweep_ = core::distant_past;
    }
    for (const Serving& serving : served_) {
        core::Lane& lane = *serving.lane;
        const bool was_failing = lane.failed.failing();
        if (serving.failed) {
            book_.failed(lane, last_wall_, serving.row_to_blame);
            if (lane.failed.failing() && !was_failing) set_failing(lane.name, true);
            continue;
        }
        if (was_failing) set_failing(lane.name, false);
        if (!prepared_seen_) {
            const core::Instant mark = core::mark_after(serving.scan, bound_);
            if (mark > start_of(lane)) {
                raise_mark_of_dispatcher(lane.name, mark);
                lane.mark = mark;
                safe_marks_.moved(lane.name);
            }
        }
        book_.scanned(lane, serving.scan, last_wall_, serving.ahead);
        count_.fired += serving.scan.fired;
        if (!lane.known && !has_timers(serving)) book_.forget(lane);
    }
}

bool Dispatch::nobody_expected(core::Instant now) const {
    return now >= core::later_by(others_seen_, expected_for) &&
           book_.deadline_without_backlog() >= core::later_by(now, expected_for);
}

void Dispatch::close() {
    const core::Instant next_lane = holding_ ? book_.deadline_without_backlog() : book_.deadline();
    deadline_ = std::min({next_lane, next_lease_, safe_marks_.due(), next_sweep_});
    if (!armed_) deadline_ = next_lease_;
    if (settings_stale_ || (armed_ && (lanes_stale_ || everywhere_))) deadline_ = core::distant_past;
    if (armed_ && prepared_seen_) deadline_ = std::min(deadline_, prepared_due_);
    count_.took = pg::monotonic_clock() - last_monotonic_;
    deadline_ = end_pass(deadline_, book_.passed_over(), count_);
}

}  // namespace engine

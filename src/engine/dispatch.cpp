#include "engine/dispatch.hpp"

#include <algorithm>

#include "engine/calls.hpp"
#include "engine/lane_registry.hpp"
#include "engine/waking.hpp"
#include "pg/clock.hpp"
#include "pg/extension.hpp"
#include "pg/locks.hpp"
#include "pg/log.hpp"
#include "pg/notify.hpp"
#include "store/arming.hpp"
#include "store/claims.hpp"
#include "store/lanes.hpp"
#include "store/recovery.hpp"
#include "store/settings.hpp"
#include "store/values.hpp"

namespace engine {

namespace {

constexpr std::size_t lanes_per_pass = 100;
constexpr std::int64_t leases_per_pass = 1000;
constexpr std::int64_t between_sweeps = core::minute;
// A clock that runs this much behind the monotonic one has been set back.
constexpr std::int64_t jump = core::second;

// Whether the error lies in the row rather than in the server's state: resources, locks, interventions, I/O.
bool is_about_data(int sqlstate) {
    switch (ERRCODE_TO_CATEGORY(sqlstate)) {
        case ERRCODE_INSUFFICIENT_RESOURCES:
        case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:
        case ERRCODE_OPERATOR_INTERVENTION:
        case ERRCODE_TRANSACTION_ROLLBACK:
        case ERRCODE_SYSTEM_ERROR:
        case ERRCODE_SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION:
            return false;
        default:
            return true;
    }
}

// Every firable kind of delivery that the dispatcher itself serves.
constexpr core::Delivery own_deliveries[] = {core::Delivery::outbox, core::Delivery::notify};

}  // namespace

Dispatch::Dispatch() : identity_(store::own_identity()) {}

void Dispatch::start() {
    look_whether_armed();
    // Writers that started before the floor was known have read the stored marks instead.
    raise_floor(std::max(store::highest_safe_mark(), core::distant_past + 1));
    read_settings();
    store::each_lane_with_timers([this](std::string_view lane) {
        book_.lane(lane);
        if (armed_) ensure_lane(lane);
    });
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

void Dispatch::reload() { settings_stale_ = true; }

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
    if (taken.spilled != core::never) {
        lanes_stale_ = true;
        for (auto& [name, lane] : book_.lanes()) {
            lane.mark = std::min(lane.mark, taken.spilled);
        }
    }
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
}

bool Dispatch::has_work() const {
    const core::Instant now = last_wall_;
    if (!armed_) return settings_stale_;
    return settings_stale_ || lanes_stale_ || book_.deadline() <= now || next_lease_ <= now ||
           safe_marks_.due() <= now || next_sweep_ <= now;
}

core::Instant Dispatch::start_of(const core::Lane& lane) const {
    const ScanStart start = scan_start(lane.name);
    return start.shared ? start.mark : lane.mark;
}

void Dispatch::work() {
    if (settings_stale_) {
        look_whether_armed();
        read_settings();
    }
    if (!armed_) return;
    if (std::exchange(lanes_stale_, false))
        store::each_lane_with_timers([this](std::string_view lane) { book_.lane(lane); });

    const core::Instant now = pg::wall_clock();
    const Oid table = store::timer_table();
    if (safe_marks_.ready(table, now)) safe_marks_.store(book_);
    if (next_lease_ <= now) requeue(now);

    // Before the snapshot of the scan: what is prepared then may be committed without a note of its own.
    const bool prepared_before = std::exchange(prepared_seen_, pg::prepared_writers(table));
    if (!prepared_seen_) prepared_.succeed();
    // Lanes that are not due now may have been scanned while the last of them was still prepared.
    everywhere_ |= prepared_before && !prepared_seen_;

    high_clock_ = std::max(high_clock_, now);
    bound_ = std::max(raise_floor(core::distant_past), high_clock_);
    const store::PassClock clock{now, bound_, now};
    const std::vector<core::Lane*> due = book_.due(now, lanes_per_pass, store::batch_size());
    for (core::Lane* lane : due) learn(*lane);
    for (const core::Delivery delivery : own_deliveries) {
        std::vector<core::Lane*> lanes;
        std::copy_if(due.begin(), due.end(), std::back_inserter(lanes), [=](const core::Lane* lane) {
            return lane->served() && lane->settings.delivery == delivery;
        });
        if (!lanes.empty()) serve(delivery, lanes, clock);
    }
    for (core::Lane* lane : due)
        if (lane->settings.delivery == core::Delivery::handler) call_handlers(*lane);
    ring_doorbells();
    if (due.empty()) sweep(now);

    // Where nothing more is due, see when something will be.
    std::vector<std::string_view> drained;
    for (const Serving& serving : served_)
        if (!serving.failed && !serving.scan.full) drained.push_back(serving.lane->name);
    const std::vector<core::Instant> wakes =
        drained.empty() ? std::vector<core::Instant>{} : store::next_wakes(drained, bound_);
    auto wake = wakes.begin();
    for (Serving& serving : served_)
        if (!serving.failed && !serving.scan.full) serving.ahead = *wake++;

    // Timers that came by COPY or by hand, or beside another transaction that was first and rolled back.
    for (const Serving& serving : served_)
        if (!serving.lane->known && has_timers(serving)) ensure_lane(serving.lane->name);
}

std::vector<core::LaneScan> Dispatch::fire(core::Delivery delivery, const std::vector<core::Lane*>& lanes,
                                           const store::PassClock& clock) {
    std::vector<store::LaneTask> tasks;
    for (const core::Lane* lane : lanes) {
        store::LaneTask task{lane->name, start_of(*lane), lane->share, lane->settings.max_attempts,
                             lane->settings.lease};
        if (lane->settings.channel) task.channel = *lane->settings.channel;
        tasks.push_back(task);
    }
    constexpr std::int64_t all = INT64_MAX;    // the shares bound the pass
    return delivery == core::Delivery::notify ? store::fire_by_notify(tasks, clock, all, identity_)
                                              : store::fire_into_outbox(tasks, clock, all, identity_);
}

// One lane's failure must not stop the others: when all together fail, each is tried alone. Nor may one row's failure
// stop its lane: when a row alone fails, it is set back.
void Dispatch::serve(core::Delivery delivery, const std::vector<core::Lane*>& lanes, const store::PassClock& clock) {
    std::vector<core::LaneScan> scans;
    const auto failure = pg::attempt([&] { scans = fire(delivery, lanes, clock); });
    if (!failure) {
        for (std::size_t i = 0; i < lanes.size(); i++) {
            // The settings, or whether the database is armed, have changed since they were read.
            if (scans[i].refused) settings_stale_ = true;
            else served_.push_back({lanes[i], scans[i], false, false, core::never});
        }
        return;
    }
    if (lanes.size() > 1) {
        for (core::Lane* lane : lanes) serve(delivery, {lane}, clock);
        return;
    }
    core::Lane& lane = *lanes[0];
    const bool row_to_blame = is_about_data(failure->sqlstate);
    served_.push_back({&lane, {}, true, row_to_blame, core::never});
    if (row_to_blame && lane.share > 1) return;
    pg::warn("could not fire timers of process manager \"" + lane.name + "\": " + failure->message, nullptr,
             row_to_blame ? "The timer is tried again later; the others go on."
                          : "The process manager is tried again in a while; the others go on.");
    if (row_to_blame)
        store::set_back({lane.name, start_of(lane), 1, lane.settings.max_attempts}, clock, failure->message);
}

// Handler workers scan the lane themselves, and leave a note of when to look at it next.
void Dispatch::call_handlers(core::Lane& lane) {
    const core::Instant first = store::next_wakes({lane.name}, core::later_by(start_of(lane), -1))[0];
    if (first > bound_) {
        book_.scanned(lane, {}, last_wall_, first);
        return;
    }
    const bool called = call_lane(lane.name, lane.settings.max_concurrent);
    if (!called)
        pg::warn("the handler of process manager \"" + lane.name + "\" cannot be called: it has no place in shared memory",
                 nullptr, "Raise durable_timers.max_lanes and restart the server.");
    book_.scanned(lane, {}, last_wall_, called ? core::never : core::later_by(last_wall_, core::minute));
}

bool Dispatch::has_timers(const Serving& serving) {
    return serving.scan.found_something() || serving.ahead != core::never;
}

void Dispatch::ring_doorbells() const {
    std::set<std::string> channels;
    for (const Serving& serving : served_)
        if (serving.scan.fired > 0 && serving.lane->settings.delivery == core::Delivery::outbox &&
            serving.lane->settings.channel)
            channels.insert(*serving.lane->settings.channel);
    for (const std::string& channel : channels)
        if (!pg::ring(channel))
            pg::warn("the doorbell \"" + channel + "\" was not rung: the notification queue is nearly full", nullptr,
                     "Find the listener that does not read; the events are in timers.outbox.");
}

void Dispatch::requeue(core::Instant now) {
    const std::int64_t requeued = store::requeue_expired(now, pg::null_value, leases_per_pass);
    const core::Instant next = store::next_lease(lease_mark_);
    if (requeued == leases_per_pass) {
        next_lease_ = now;
    } else if (next <= now) {
        // Somebody holds the timer's row locked.
        next_lease_ = core::later_by(now, core::second);
    } else {
        next_lease_ = next;
        lease_mark_ = std::max(lease_mark_, now);
    }
}

// Retention has the time in which nothing is due.
void Dispatch::sweep(core::Instant now) {
    swept_lane_ = lane_to_sweep(now);
    if (swept_lane_ == nullptr) return;
    const core::Lane& lane = *swept_lane_;
    sweep_ = store::sweep(lane.name, lane.retention.from(), start_of(lane),
                          core::later_by(now, -*lane.settings.retention), lane.retention.rows());
}

core::Lane* Dispatch::lane_to_sweep(core::Instant now) {
    core::Lane* first = nullptr;
    next_sweep_ = core::never;
    for (auto& [name, lane] : book_.lanes()) {
        if (!lane.settings.retention) continue;
        if (lane.retention.due() <= now && first == nullptr) first = &lane;
        next_sweep_ = std::min(next_sweep_, lane.retention.due());
    }
    return first;
}

void Dispatch::committed() {
    count_.worked = true;
    if (swept_lane_ != nullptr) {
        swept_lane_->retention.swept(sweep_, last_wall_, *swept_lane_->settings.retention, between_sweeps);
        next_sweep_ = core::distant_past;
    }
    for (const Serving& serving : served_) {
        core::Lane& lane = *serving.lane;
        if (serving.failed) {
            book_.failed(lane, last_wall_, serving.row_to_blame);
            continue;
        }
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

void Dispatch::close() {
    deadline_ = std::min({book_.deadline(), next_lease_, safe_marks_.due(), next_sweep_});
    if (!armed_) deadline_ = core::never;
    if (settings_stale_ || (armed_ && (lanes_stale_ || everywhere_))) deadline_ = core::distant_past;
    if (armed_ && prepared_seen_) deadline_ = std::min(deadline_, prepared_due_);
    end_pass(deadline_, book_.passed_over(), count_);
}

}  // namespace engine

// What a pass of the dispatcher does, lane by lane: fire, set back, call handlers, ring, end leases, sweep.

#include "engine/dispatch.hpp"

#include <algorithm>
#include <set>

#include "engine/calls.hpp"
#include "engine/transaction_end.hpp"
#include "pg/clock.hpp"
#include "pg/log.hpp"
#include "pg/notify.hpp"
#include "store/claims.hpp"
#include "store/recovery.hpp"
#include "store/resume.hpp"
#include "store/settings.hpp"

namespace engine {

namespace {

constexpr std::size_t lanes_per_pass = 100;
constexpr std::int64_t leases_per_pass = 1000;

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

// Of two passes in a row one at most lets others wait for a backlog.
std::vector<core::Lane*> Dispatch::lanes_due(core::Instant now, std::int64_t budget) {
    if (holding_) return {};
    const bool others_first = backlog_served_ && book_.deadline_without_backlog() <= now;
    std::vector<core::Lane*> due = book_.due(now, lanes_per_pass, budget,
                                             others_first ? core::LaneBook::Whose::without_backlog
                                                          : core::LaneBook::Whose::all);
    const auto backlogs = std::count_if(due.begin(), due.end(), [](const core::Lane* lane) { return lane->backlog; });
    if (others_first || (backlogs > 0 && backlogs < std::ssize(due))) others_seen_ = now;
    backlog_served_ = backlogs > 0;
    return due;
}

// Portion after portion, up to a batch, as long as there is more in every lane that is served and nobody else is due.
void Dispatch::serve_in_portions(const std::vector<core::Lane*>& due, const store::PassClock& clock, std::int64_t batch) {
    std::vector<core::Lane*> lanes = due;
    for (;;) {
        const std::int64_t begin = pg::monotonic_clock();
        const std::int64_t rows_before = rows_;
        serve_all(lanes, clock);
        pace_.took(rows_ - rows_before, pg::monotonic_clock() - begin);

        lanes = with_more();
        if (lanes.empty() || lanes.size() < served_.size() || rows_ >= batch) return;
        std::vector<std::string_view> names;
        for (const core::Lane* lane : lanes) names.push_back(lane->name);
        const core::Instant other = std::min(book_.deadline_without_backlog(), soonest_note(names));
        if (!pace_.goes_on(pg::wall_clock(), other)) return;
    }
}

void Dispatch::serve_all(const std::vector<core::Lane*>& lanes, const store::PassClock& clock) {
    for (const core::Delivery delivery : own_deliveries) {
        std::vector<core::Lane*> some;
        std::copy_if(lanes.begin(), lanes.end(), std::back_inserter(some), [=](const core::Lane* lane) {
            return lane->served() && lane->settings.delivery == delivery;
        });
        if (!some.empty()) serve(delivery, some, clock);
    }
}

// Adds a scan to what the pass has done for the lane. The next one begins where this one got to, so that the last scan
// tells all there is to know of what is left.
void Dispatch::note_served(core::Lane& lane, const core::LaneScan& scan) {
    lane.resume = core::mark_after(scan, bound_);
    rows_ += scan.fired + scan.killed + scan.rearmed;
    const auto found = std::find_if(served_.begin(), served_.end(),
                                    [&](const Serving& serving) { return serving.lane == &lane; });
    if (found == served_.end()) {
        served_.push_back({&lane, scan, false, false, core::never});
        return;
    }
    const core::LaneScan before = std::exchange(found->scan, scan);
    found->scan.fired += before.fired;
    found->scan.killed += before.killed;
    found->scan.rearmed += before.rearmed;
}

// The lanes whose last scan was full and met nothing that somebody holds locked.
std::vector<core::Lane*> Dispatch::with_more() const {
    std::vector<core::Lane*> lanes;
    for (const Serving& serving : served_)
        if (!serving.failed && serving.scan.full && serving.scan.passed_over == core::never && serving.scan.fired > 0)
            lanes.push_back(serving.lane);
    return lanes;
}

// One lane's failure must not stop the others: when all together fail, each is tried alone. Nor may one row's failure
// stop its lane: when a row alone fails, it is set back.
void Dispatch::serve(core::Delivery delivery, const std::vector<core::Lane*>& lanes, const store::PassClock& clock) {
    std::vector<core::LaneScan> scans;
    const auto failure = pg::attempt([&] { scans = fire(delivery, lanes, clock); });
    if (!failure) {
        for (std::size_t i = 0; i < lanes.size(); i++) {
            // The settings, or whether the database is armed, have changed since they were read.
            if (scans[i].refused) {
                settings_stale_ = true;
                continue;
            }
            count_delivered(lanes[i]->name, delivery, scans[i].fired);
            if (scans[i].skipped > 0) counts_of(lanes[i]->name).skipped += static_cast<std::uint64_t>(scans[i].skipped);
            note_served(*lanes[i], scans[i]);
        }
        return;
    }
    if (lanes.size() > 1) {
        for (core::Lane* lane : lanes) serve(delivery, {lane}, clock);
        return;
    }
    core::Lane& lane = *lanes[0];
    // What this pass has done for the lane before stands; the next one meets the failure anew.
    if (lane.resume != core::distant_past) return;
    const bool row_to_blame = is_about_data(failure->sqlstate);
    served_.push_back({&lane, {}, true, row_to_blame, core::never});
    if (row_to_blame && lane.share > 1) return;
    counts_of(lane.name).delivery_failures++;
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
    const std::optional<core::Instant> again = call_lane(lane.name, lane.settings.max_concurrent);
    if (!again)
        pg::warn("the handler of process manager \"" + lane.name + "\" cannot be called: it has no place in shared memory",
                 nullptr, "Raise durable_timers.max_lanes and restart the server.");
    book_.scanned(lane, {}, last_wall_, again.value_or(core::later_by(last_wall_, core::minute)));
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

// A database that is not armed requeues nothing, but a resume ends there as everywhere: it reaches nobody.
void Dispatch::end_leases(core::Instant now) {
    if (next_lease_ > now) return;
    std::int64_t ended = store::recover_expired_resumes(now, leases_per_pass);
    if (armed_) ended = std::max(ended, store::requeue_expired(now, pg::null_value, leases_per_pass));
    const core::Instant next = store::next_lease(lease_mark_, !armed_);
    if (ended == leases_per_pass) {
        next_lease_ = now;
    } else if (next <= now) {
        // Somebody holds the timer's row locked.
        next_lease_ = core::later_by(now, core::second);
    } else {
        next_lease_ = next;
        lease_mark_ = std::max(lease_mark_, now);
    }
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

}  // namespace engine

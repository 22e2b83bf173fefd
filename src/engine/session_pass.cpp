#include "engine/session_pass.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/lane_book.hpp"
#include "engine/session_lanes.hpp"
#include "engine/transaction_end.hpp"
#include "engine/waking.hpp"
#include "pg/clock.hpp"
#include "pg/locks.hpp"
#include "pg/notify.hpp"
#include "store/claims.hpp"
#include "store/firing.hpp"
#include "store/lanes.hpp"
#include "store/resume.hpp"
#include "store/values.hpp"

namespace engine {

namespace {

constexpr std::size_t lanes_per_scan = 100;

// What every pass in a session needs to know before its first scan.
class SessionPass {
public:
    explicit SessionPass(core::Instant as_of) {
        now_ = pg::wall_clock();
        const Oid table = store::timer_table();
        notes().touch();
        prepared_ = pg::prepared_writers(table);
        // This transaction may be a writer itself, but what it wrote it sees.
        if (!available()) {
            const std::vector<pg::LockHolder> writers = pg::table_writers(table);
            alone_ = std::all_of(writers.begin(), writers.end(),
                                 [](const auto& writer) { return writer.backend == pg::own_backend(); });
        }
        Instant floor = core::distant_past;
        read_floor(floor);
        clock_ = {as_of, std::max({as_of, now_, floor}), now_};
    }

    const store::PassClock& clock() const { return clock_; }

    // A scan of the lane is done; what it covered may be skipped from the commit on.
    void covered(const SessionLane& lane, const core::LaneScan& scan) const {
        // A snapshot of the whole transaction may be older than what was published before the scan began.
        if (prepared_ || IsolationUsesXactSnapshot()) return;
        const core::Instant mark = std::min(core::mark_after(scan, clock_.bound), now_);
        if (mark <= lane.from()) return;
        raise_mark_at_commit(lane.name, mark, lane.start);
        // Nobody else keeps the stored marks where no dispatcher runs; the rule is that of SafeMarks.
        if (alone_ && mark > core::later_by(lane.stored, store_after)) store::store_safe_mark(lane.name, mark);
    }

private:
    static constexpr std::int64_t store_after = core::minute;

    core::Instant now_;
    bool prepared_;
    bool alone_ = false;    // without shared memory: nobody was writing timers after the clock had been read
    store::PassClock clock_;
};

std::vector<store::LaneTask> tasks_for(const std::vector<SessionLane*>& lanes, std::int64_t share) {
    std::vector<store::LaneTask> tasks;
    for (const SessionLane* lane : lanes) {
        store::LaneTask task{lane->name, lane->from(), share, lane->settings.max_attempts, lane->settings.lease};
        if (lane->settings.channel) task.channel = *lane->settings.channel;
        tasks.push_back(task);
    }
    return tasks;
}

// The next lanes of one kind of delivery that are not drained yet.
std::vector<SessionLane*> next_lanes(std::vector<SessionLane>& lanes, core::Delivery delivery, std::size_t most) {
    std::vector<SessionLane*> next;
    for (SessionLane& lane : lanes)
        if (!lane.drained && !lane.settings.paused && lane.settings.delivery == delivery && next.size() < most)
            next.push_back(&lane);
    return next;
}

// When the lane of an empty scan is worth another look.
core::Instant next_look(const core::LaneScan& scan, const SessionLane& lane, const SessionPass& pass) {
    const core::Instant ahead = store::next_wakes({lane.name}, pass.clock().bound)[0];
    // What somebody holds locked may come free without a word.
    const core::Instant locked =
        scan.passed_over == core::never ? core::never : core::later_by(pass.clock().now, 100 * core::millisecond);
    return std::min({ahead, scan.waiting_fire, locked});
}

}  // namespace

std::int64_t fire_due(core::Instant as_of, std::int64_t most) {
    // Before the pass takes its clock: what is requeued is written at the clock.
    notes().touch();
    store::recover_expired_resumes(as_of, INT64_MAX);
    store::requeue_expired(as_of, pg::null_value, most);
    const SessionPass pass(as_of);

    std::int64_t fired = 0;
    std::set<std::string> bells;
    std::vector<SessionLane> lanes = lanes_with_timers();
    for (const core::Delivery delivery : {core::Delivery::outbox, core::Delivery::notify}) {
        std::int64_t widening = 1;
        while (fired < most) {
            const auto room = static_cast<std::size_t>(most - fired);
            const auto chunk = next_lanes(lanes, delivery, std::min(room, lanes_per_scan));
            if (chunk.empty()) break;
            const std::int64_t share = (most - fired) / static_cast<std::int64_t>(chunk.size());
            const auto tasks = tasks_for(chunk, share * widening);
            const auto scans = delivery == core::Delivery::outbox
                                   ? store::fire_into_outbox(tasks, pass.clock(), most - fired)
                                   : store::fire_by_notify(tasks, pass.clock(), most - fired);
            bool moved = false;
            for (std::size_t i = 0; i < chunk.size(); i++) {
                const core::LaneScan& scan = scans[i];
                fired += scan.fired;
                count_delivered(chunk[i]->name, delivery, scan.fired);
                if (scan.refused) {
                    chunk[i]->drained = true;
                    continue;
                }
                moved |= scan.fired + scan.killed + scan.rearmed > 0 || !scan.full;
                chunk[i]->drained = !scan.full;
                pass.covered(*chunk[i], scan);
                if (scan.fired > 0 && delivery == core::Delivery::outbox && chunk[i]->settings.channel)
                    bells.insert(*chunk[i]->settings.channel);
            }
            // Rows that cannot be taken fill the whole share: look behind them.
            widening = moved ? 1 : widening * 2;
        }
    }
    for (const std::string& channel : bells) pg::ring(channel);
    return fired;
}

std::int64_t count_due(core::Instant as_of) {
    const SessionPass pass(as_of);
    std::vector<SessionLane> lanes = lanes_with_timers();
    std::vector<SessionLane*> all;
    all.reserve(lanes.size());
    for (SessionLane& lane : lanes) all.push_back(&lane);
    return all.empty() ? 0 : store::count_due(tasks_for(all, 0), pass.clock());
}

ClaimOutcome claim_due(const ClaimRequest& request,
                       const std::function<void(const pg::Rows&, std::uint64_t, int)>& visit) {
    const SessionPass pass(request.as_of);
    std::vector<SessionLane> lanes = request.lane ? lanes_named(*request.lane) : lanes_with_timers();
    std::vector<SessionLane*> all;
    for (SessionLane& lane : lanes) {
        if (lane.settings.paused) continue;
        if (request.lease) lane.settings.lease = *request.lease;
        all.push_back(&lane);
    }
    ClaimOutcome outcome;
    if (all.empty()) return outcome;

    // What other workers hold locked, and what was postponed, stands in front: look behind it, and one further, to
    // tell whether there is more.
    for (std::int64_t share = request.most + 1; outcome.claimed < request.most; share *= 2) {
        const auto scans = store::claim(tasks_for(all, share), pass.clock(), share, request.most - outcome.claimed,
                                        request.claimer, visit);
        outcome.more = false;
        bool moved = false;
        for (std::size_t i = 0; i < scans.size(); i++) {
            if (scans[i].refused) continue;
            outcome.claimed += scans[i].fired;
            count_delivered(all[i]->name, request.claimer.delivery, scans[i].fired);
            outcome.killed += scans[i].killed;
            moved |= scans[i].rearmed + scans[i].killed > 0;
            outcome.more |= scans[i].full;
            pass.covered(*all[i], scans[i]);
        }
        if (outcome.more || moved) continue;
        if (request.lane && outcome.claimed == 0 && !scans[0].refused) outcome.next = next_look(scans[0], *all[0], pass);
        break;
    }
    return outcome;
}

}  // namespace engine

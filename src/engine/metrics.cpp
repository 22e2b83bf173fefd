#include "engine/metrics.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>

#include "engine/dispatcher_state.hpp"
#include "engine/overview.hpp"
#include "engine/shared.hpp"
#include "pg/clock.hpp"

namespace engine {

namespace {

using core::metric;
using core::Metric;
using core::Sample;
using core::SamplePart;

// Adds the samples of a process manager, or of the database where there is none.
class Gatherer {
public:
    Gatherer(std::vector<Sample>& samples, std::optional<std::string_view> process_manager, bool known)
        : samples_(samples), process_manager_(process_manager), known_(known) {}

    // What is always known.
    void gauge(const Metric* what, std::int64_t value) {
        samples_.push_back({.metric = what, .process_manager = process_manager(), .value = static_cast<double>(value)});
    }

    // What shared memory knows, if there is any.
    void count(const Metric* what, std::uint64_t count) { put_counted({what, process_manager()}, count); }

    template <std::size_t size>
    void counts(const Metric* what, const char* label, const char* const (&values)[size],
                const std::uint64_t (&counts)[size]) {
        for (std::size_t i = 0; i < size; i++)
            put_counted({what, process_manager(), SamplePart::value, label, values[i]}, counts[i]);
    }

    template <const auto& edges>
    void histogram(const Metric* what, const core::Histogram<edges>& histogram) {
        std::uint64_t so_far = 0;
        for (std::size_t i = 0; i < histogram.size; i++) {
            so_far += histogram.buckets[i];
            const double edge = i + 1 < histogram.size ? static_cast<double>(edges[i])
                                                       : std::numeric_limits<double>::infinity();
            put_counted({what, process_manager(), SamplePart::bucket, nullptr, nullptr, edge}, so_far);
        }
        put_counted({what, process_manager(), SamplePart::sum}, histogram.sum);
        put_counted({what, process_manager(), SamplePart::count}, so_far);
    }

private:
    std::optional<std::string> process_manager() const {
        if (!process_manager_) return std::nullopt;
        return std::string(*process_manager_);
    }

    void put_counted(Sample sample, std::uint64_t count) {
        if (known_) sample.value = static_cast<double>(count);
        samples_.push_back(std::move(sample));
    }

    std::vector<Sample>& samples_;
    const std::optional<std::string_view> process_manager_;
    const bool known_;
};

void add_overview(Gatherer& gatherer, const LaneOverview& lane, core::Instant now) {
    gatherer.gauge(metric("timer.scheduled"), lane.scheduled.value);
    gatherer.gauge(metric("timer.backlog"), lane.due.value);
    gatherer.gauge(metric("timer.overdue"),
                   lane.oldest.value == core::never ? 0 : now - lane.oldest.value);
    gatherer.gauge(metric("timer.firing"), lane.firing.value);
    gatherer.gauge(metric("timer.stuck"), lane.stuck.value);
    gatherer.gauge(metric("timer.resuming"), lane.resuming.value);
    gatherer.gauge(metric("timer.dead"), lane.dead.value);
    if (lane.stored != core::distant_past)
        gatherer.gauge(metric("timer.safe_mark.age"), std::max<std::int64_t>(0, now - lane.stored));
}

void add_counts(Gatherer& gatherer, const core::LaneCounts& counts) {
    gatherer.count(metric("timer.fired"), counts.fired);
    gatherer.counts(metric("timer.delivered"), "delivery", core::delivery_labels, counts.delivered);
    gatherer.count(metric("timer.cancelled"), counts.cancelled);
    gatherer.count(metric("timer.dead_lettered"), counts.dead_lettered);
    gatherer.count(metric("timer.retried"), counts.retried);
    gatherer.count(metric("timer.requeued"), counts.requeued);
    gatherer.counts(metric("timer.resumes"), "outcome", core::resume_labels, counts.resumes);
    gatherer.count(metric("timer.delivery.failures"), counts.delivery_failures);
    gatherer.count(metric("timer.handler.failures"), counts.handler_failures);
    gatherer.count(metric("timer.skipped"), counts.skipped);
    gatherer.histogram(metric("timer.fire.lag"), counts.lag);
    gatherer.histogram(metric("timer.attempts"), counts.attempts);
}

void add_database(Gatherer& gatherer, const SharedDatabase& database) {
    gatherer.count(metric("timer.passes"), database.passes);
    gatherer.count(metric("timer.wakeups"), database.wakeups);
    gatherer.histogram(metric("timer.pass.time"), database.pass_time);
}

// What was counted in a lane. False when that is among the counts of the database, for want of a place.
bool read_counts(std::string_view name, core::LaneCounts& counts) {
    const SharedLock lock;
    if (const SharedLane* lane = find_lane(MyDatabaseId, name)) counts = lane->counts;
    return !is_crowded_out(MyDatabaseId, name);
}

}  // namespace

std::vector<Sample> gather_metrics() {
    SharedDatabase database{};
    bool known = false;
    if (available()) {
        const SharedLock lock;
        if (const auto* place = find_database(MyDatabaseId)) {
            database = *place;
            known = true;
        }
    }
    std::vector<Sample> samples;
    Gatherer whole(samples, std::nullopt, known);
    const std::string_view state = dispatcher_state(known ? &database : nullptr);
    whole.gauge(metric("timer.dispatcher.running"), state == "running" ? 1 : 0);
    add_database(whole, database);
    // Lanes without a place share one.
    if (const core::LaneCounts none{}; std::memcmp(&database.unplaced, &none, sizeof none) != 0)
        add_counts(whole, database.unplaced);
    if (known) whole.gauge(metric("timer.counted.since"), database.counted_since + core::from_1970_to_2000);

    const core::Instant now = pg::wall_clock();
    for (const LaneOverview& lane : look_over(now)) {
        core::LaneCounts counts{};
        Gatherer gatherer(samples, lane.name, known && read_counts(lane.name, counts));
        add_overview(gatherer, lane, now);
        add_counts(gatherer, counts);
    }
    return samples;
}

}  // namespace engine

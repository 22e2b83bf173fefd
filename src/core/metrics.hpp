// The metrics: their names, in timers.metrics and for Prometheus, and what each is. Spans of time are gathered in
// microseconds, shown in milliseconds, and exposed to Prometheus in seconds.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace core {

enum class MetricType { gauge, counter, histogram };
inline constexpr const char* metric_type_labels[] = {"gauge", "counter", "histogram"};

enum class MetricUnit { none, span };

struct Metric {
    const char* name;
    const char* exposed_name;
    MetricType type;
    MetricUnit unit;
    const char* help;
};

// In the order in which they are shown.
inline constexpr Metric all_metrics[] = {
    {"timer.dispatcher.running", "durable_timers_dispatcher_running", MetricType::gauge, MetricUnit::none,
     "1 while the dispatcher runs and is armed; 0: nothing fires by itself."},
    {"timer.scheduled", "durable_timers_scheduled", MetricType::gauge, MetricUnit::none,
     "Timers that wait, due ones included; an estimate where they are many."},
    {"timer.backlog", "durable_timers_backlog", MetricType::gauge, MetricUnit::none,
     "Timers that are due; at least so many where they are many."},
    {"timer.overdue", "durable_timers_oldest_overdue_seconds", MetricType::gauge, MetricUnit::span,
     "How long ago the earliest timer that is due should have fired; 0: none is due."},
    {"timer.firing", "durable_timers_firing", MetricType::gauge, MetricUnit::none,
     "Timers that a worker has claimed; at least so many where they are many."},
    {"timer.stuck", "durable_timers_stuck", MetricType::gauge, MetricUnit::none,
     "Claimed timers whose lease is over, and that nobody has requeued."},
    {"timer.resuming", "durable_timers_resuming", MetricType::gauge, MetricUnit::none,
     "Dead timers under a guarded claim."},
    {"timer.dead", "durable_timers_dead", MetricType::gauge, MetricUnit::none,
     "Timers that were given up on; an estimate where they are many."},
    {"timer.safe_mark.age", "durable_timers_safe_mark_age_seconds", MetricType::gauge, MetricUnit::span,
     "How far back a dispatcher would begin to scan after a restart of the server."},
    {"timer.fired", "durable_timers_fired_total", MetricType::counter, MetricUnit::none,
     "Timers that became fired."},
    {"timer.delivered", "durable_timers_delivered_total", MetricType::counter, MetricUnit::none,
     "Timers handed over: events in the outbox, notifications, claims by handler workers and by other workers."},
    {"timer.cancelled", "durable_timers_cancelled_total", MetricType::counter, MetricUnit::none,
     "Timers that were cancelled."},
    {"timer.dead_lettered", "durable_timers_dead_lettered_total", MetricType::counter, MetricUnit::none,
     "Timers that were given up on, by the attempt ceiling or by hand."},
    {"timer.retried", "durable_timers_retried_total", MetricType::counter, MetricUnit::none,
     "Dead timers that were scheduled again."},
    {"timer.requeued", "durable_timers_requeued_total", MetricType::counter, MetricUnit::none,
     "Firings that were taken back, when their lease was over or by hand."},
    {"timer.resumes", "durable_timers_resumes_total", MetricType::counter, MetricUnit::none,
     "Guarded claims of dead timers, and what they came to."},
    {"timer.delivery.failures", "durable_timers_delivery_failures_total", MetricType::counter, MetricUnit::none,
     "Errors of firing into the outbox or by NOTIFY."},
    {"timer.handler.failures", "durable_timers_handler_failures_total", MetricType::counter, MetricUnit::none,
     "Handlers that raised an error or took too long."},
    {"timer.skipped", "durable_timers_skipped_rows_total", MetricType::counter, MetricUnit::none,
     "Rows that a pass of the dispatcher skipped because somebody held them locked."},
    {"timer.fire.lag", "durable_timers_fire_lag_seconds", MetricType::histogram, MetricUnit::span,
     "From fire_at to each attempt."},
    {"timer.attempts", "durable_timers_attempts", MetricType::histogram, MetricUnit::none,
     "Which attempt of its timer each was."},
    {"timer.passes", "durable_timers_passes_total", MetricType::counter, MetricUnit::none,
     "Transactions of the dispatcher."},
    {"timer.wakeups", "durable_timers_wakeups_total", MetricType::counter, MetricUnit::none,
     "How often the dispatcher woke, to work or to find that it need not."},
    {"timer.pass.time", "durable_timers_pass_seconds", MetricType::histogram, MetricUnit::span,
     "How long the passes of the dispatcher took that ran a transaction."},
    {"timer.counted.since", "durable_timers_counted_since_seconds", MetricType::gauge, MetricUnit::span,
     "Since when the counters count, after 1970-01-01 UTC."},
};

// One of them; an unknown name does not compile.
consteval const Metric* metric(std::string_view name) {
    for (const Metric& one : all_metrics)
        if (one.name == name) return &one;
    throw "no such metric";
}

// Which number of a metric a sample is; only histograms have more than one.
enum class SamplePart { value, bucket, sum, count };

// A number: of a process manager, or of the database.
struct Sample {
    const Metric* metric;
    std::optional<std::string> process_manager;
    SamplePart part = SamplePart::value;
    const char* label = nullptr;         // besides, with what it says
    const char* label_value = nullptr;
    double edge = 0;                     // of a bucket: its highest value
    std::optional<double> value = {};    // nothing: not known, there is no shared memory
};

// A sample's numbers as timers.metrics shows them.
double shown_value(const Sample& sample);
double shown_edge(const Sample& sample);

// A number as text: whole where it is whole, and as short as it can be read back from.
std::string text_of(double number);

// The samples in Prometheus' text format, each metric with its help and type; what is not known is left out.
std::string prometheus_text(const std::vector<Sample>& samples);

}  // namespace core

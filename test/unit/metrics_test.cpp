// Intent: metrics are rendered as Prometheus' text format asks, whatever a process manager is called.
#include "core/metrics.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>
#include <vector>

namespace {

using core::metric;
using core::Sample;
using core::SamplePart;

std::string rendered(const std::vector<Sample>& samples) { return core::prometheus_text(samples); }

TEST(Metrics, NothingIsNothing) { EXPECT_EQ(rendered({}), ""); }

TEST(Metrics, AGaugeOfTheDatabase) {
    EXPECT_EQ(rendered({{.metric = metric("timer.dispatcher.running"), .value = 1}}),
              "# HELP durable_timers_dispatcher_running 1 while the dispatcher runs and is armed; 0: nothing fires by "
              "itself.\n"
              "# TYPE durable_timers_dispatcher_running gauge\n"
              "durable_timers_dispatcher_running 1\n");
}

TEST(Metrics, WhatIsNotKnownIsLeftOut) {
    EXPECT_EQ(rendered({{.metric = metric("timer.passes")}}), "") << "not even its heading";
}

TEST(Metrics, HeadedOnceWhereverTheSamplesStand) {
    EXPECT_EQ(rendered({{.metric = metric("timer.fired"), .process_manager = "b", .value = 2},
                        {.metric = metric("timer.cancelled"), .process_manager = "b", .value = 7},
                        {.metric = metric("timer.fired"), .process_manager = "a", .value = 3}}),
              "# HELP durable_timers_fired_total Timers that became fired.\n"
              "# TYPE durable_timers_fired_total counter\n"
              "durable_timers_fired_total{process_manager=\"b\"} 2\n"
              "durable_timers_fired_total{process_manager=\"a\"} 3\n"
              "# HELP durable_timers_cancelled_total Timers that were cancelled.\n"
              "# TYPE durable_timers_cancelled_total counter\n"
              "durable_timers_cancelled_total{process_manager=\"b\"} 7\n");
}

TEST(Metrics, LabelsAreEscaped) {
    const std::string text = rendered({{.metric = metric("timer.delivered"),
                                        .process_manager = "a\"b\\c\nd\te}{,=\xc3\xa9",
                                        .label = "delivery",
                                        .label_value = "outbox",
                                        .value = 1}});
    EXPECT_NE(text.find("{process_manager=\"a\\\"b\\\\c\\nd\te}{,=\xc3\xa9\",delivery=\"outbox\"} 1\n"),
              std::string::npos)
        << text;
}

TEST(Metrics, AHistogramOfSpans) {
    const auto* lag = metric("timer.fire.lag");
    const std::string text =
        rendered({{.metric = lag, .process_manager = "a", .part = SamplePart::bucket, .edge = 2000, .value = 1},
                  {.metric = lag,
                   .process_manager = "a",
                   .part = SamplePart::bucket,
                   .edge = std::numeric_limits<double>::infinity(),
                   .value = 3},
                  {.metric = lag, .process_manager = "a", .part = SamplePart::sum, .value = 1234567},
                  {.metric = lag, .process_manager = "a", .part = SamplePart::count, .value = 3}});
    EXPECT_EQ(text.substr(text.find("# TYPE")),
              "# TYPE durable_timers_fire_lag_seconds histogram\n"
              "durable_timers_fire_lag_seconds_bucket{process_manager=\"a\",le=\"0.002\"} 1\n"
              "durable_timers_fire_lag_seconds_bucket{process_manager=\"a\",le=\"+Inf\"} 3\n"
              "durable_timers_fire_lag_seconds_sum{process_manager=\"a\"} 1.234567\n"
              "durable_timers_fire_lag_seconds_count{process_manager=\"a\"} 3\n");
}

TEST(Metrics, SpansAreShownInMilliseconds) {
    const Sample sum{.metric = metric("timer.fire.lag"), .part = SamplePart::sum, .value = 1500};
    EXPECT_EQ(core::shown_value(sum), 1.5);
    const Sample bucket{.metric = metric("timer.fire.lag"), .part = SamplePart::bucket, .edge = 2000, .value = 4};
    EXPECT_EQ(core::shown_value(bucket), 4);
    EXPECT_EQ(core::shown_edge(bucket), 2);
    const Sample attempts{.metric = metric("timer.attempts"), .part = SamplePart::sum, .value = 1500};
    EXPECT_EQ(core::shown_value(attempts), 1500);
}

TEST(Metrics, NumbersAsShortAsTheyCanBe) {
    EXPECT_EQ(core::text_of(0), "0");
    EXPECT_EQ(core::text_of(10000000), "10000000");
    EXPECT_EQ(core::text_of(0.001), "0.001");
    EXPECT_EQ(core::text_of(0.1), "0.1");
    EXPECT_EQ(core::text_of(-2.5), "-2.5");
    EXPECT_EQ(std::stod(core::text_of(1e300)), 1e300);
    EXPECT_EQ(core::text_of(std::numeric_limits<double>::infinity()), "+Inf");
}

TEST(Metrics, NamesAreUsedOnceAndAreAsPrometheusAsks) {
    std::set<std::string> names;
    for (const core::Metric& one : core::all_metrics) {
        EXPECT_TRUE(names.insert(one.name).second) << one.name;
        const std::string exposed = one.exposed_name;
        EXPECT_TRUE(names.insert(exposed).second) << exposed;
        EXPECT_EQ(exposed.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << exposed;
        EXPECT_EQ(exposed.starts_with("durable_timers_"), true) << exposed;
        EXPECT_EQ(exposed.ends_with("_total"), one.type == core::MetricType::counter) << exposed;
        EXPECT_EQ(exposed.ends_with("_seconds"), one.unit == core::MetricUnit::span) << exposed;
        EXPECT_EQ(std::string(one.help).find_first_of("\\\n"), std::string::npos) << exposed;
    }
}

}  // namespace

// The rows of timers.metrics, and prometheus().

#include <string>

#include "api/result_set.hpp"
#include "engine/metrics.hpp"
#include "store/values.hpp"

namespace {

// timer.fire.lag, timer.fire.lag.sum, timer.fire.lag.count.
std::string name_of(const core::Sample& sample) {
    const std::string name = sample.metric->name;
    if (sample.part == core::SamplePart::sum) return name + ".sum";
    return sample.part == core::SamplePart::count ? name + ".count" : name;
}

// A JSON object of one pair, or null.
pg::Value labels_of(const core::Sample& sample) {
    std::string pair;
    if (sample.label != nullptr) pair = std::string("\"") + sample.label + "\": \"" + sample.label_value + "\"";
    if (sample.part == core::SamplePart::bucket) pair = "\"le\": \"" + core::text_of(core::shown_edge(sample)) + "\"";
    if (pair.empty()) return pg::null_value;
    const std::string object = "{" + pair + "}";
    const char* text = object.c_str();
    return {pg::call([=] { return DirectFunctionCall1(jsonb_in, CStringGetDatum(text)); })};
}

}  // namespace

TIMERS_SET_FUNCTION(timers_metrics) {
    for (const core::Sample& sample : engine::gather_metrics()) {
        const pg::Value columns[] = {
            store::text_value(name_of(sample)),
            store::text_value(core::metric_type_labels[static_cast<int>(sample.metric->type)]),
            sample.process_manager ? store::text_value(*sample.process_manager) : pg::null_value,
            labels_of(sample),
            sample.value ? pg::Value{Float8GetDatum(core::shown_value(sample))} : pg::null_value,
        };
        api::put(result, columns);
    }
}

TIMERS_FUNCTION(timers_prometheus) {
    (void)arguments;
    return store::text_value(core::prometheus_text(engine::gather_metrics()));
}

#include "core/metrics.hpp"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "core/instant.hpp"

namespace core {

namespace {

// What a sample's numbers are to be divided by, where a span is to be counted in `unit`.
double divisor(const Sample& sample, std::int64_t unit) {
    return sample.metric->unit == MetricUnit::span ? static_cast<double>(unit) : 1;
}

double value_in(const Sample& sample, std::int64_t unit) {
    // Of a histogram of spans the sum alone is a span.
    const bool counted = sample.part == SamplePart::bucket || sample.part == SamplePart::count;
    return *sample.value / (counted ? 1 : divisor(sample, unit));
}

double edge_in(const Sample& sample, std::int64_t unit) { return sample.edge / divisor(sample, unit); }

std::string escaped(std::string_view text) {
    std::string result;
    for (const char character : text) {
        switch (character) {
            case '\\': result += "\\\\"; break;
            case '"': result += "\\\""; break;
            case '\n': result += "\\n"; break;
            default: result += character;
        }
    }
    return result;
}

const char* suffix_of(SamplePart part) {
    switch (part) {
        case SamplePart::bucket: return "_bucket";
        case SamplePart::sum: return "_sum";
        case SamplePart::count: return "_count";
        default: return "";
    }
}

void add_label(std::string& labels, const char* name, std::string_view value) {
    labels += labels.empty() ? "{" : ",";
    labels.append(name).append("=\"").append(escaped(value)).append("\"");
}

void add_sample(std::string& text, const Sample& sample) {
    std::string labels;
    if (sample.process_manager) add_label(labels, "process_manager", *sample.process_manager);
    if (sample.label != nullptr) add_label(labels, sample.label, sample.label_value);
    if (sample.part == SamplePart::bucket) add_label(labels, "le", text_of(edge_in(sample, second)));
    if (!labels.empty()) labels += "}";
    text.append(sample.metric->exposed_name).append(suffix_of(sample.part)).append(labels);
    text.append(" ").append(text_of(value_in(sample, second))).append("\n");
}

}  // namespace

double shown_value(const Sample& sample) { return value_in(sample, millisecond); }

double shown_edge(const Sample& sample) { return edge_in(sample, millisecond); }

std::string text_of(double number) {
    if (std::isinf(number)) return number > 0 ? "+Inf" : "-Inf";
    if (std::isnan(number)) return "NaN";
    constexpr double exact_whole_numbers = 9007199254740992.0;
    char digits[32];
    const bool whole = std::trunc(number) == number && std::abs(number) < exact_whole_numbers;
    const auto end = whole ? std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(number)).ptr
                           : std::to_chars(digits, digits + sizeof digits, number).ptr;
    return {digits, end};
}

std::string prometheus_text(const std::vector<Sample>& samples) {
    std::string text;
    for (const Metric& metric : all_metrics) {
        bool headed = false;
        for (const Sample& sample : samples) {
            if (sample.metric != &metric || !sample.value) continue;
            if (!headed) {
                text.append("# HELP ").append(metric.exposed_name).append(" ").append(metric.help).append("\n");
                text.append("# TYPE ").append(metric.exposed_name).append(" ");
                text.append(metric_type_labels[static_cast<int>(metric.type)]).append("\n");
                headed = true;
            }
            add_sample(text, sample);
        }
    }
    return text;
}

}  // namespace core

#include "store/settings.hpp"

#include "pg/server.hpp"
#include "pg/settings.hpp"

namespace store {

namespace {
int lease_ms = 5 * 60 * 1000;
int batch = 1000;
int handler_timeout_ms = 60 * 1000;
int retention_minutes = 7 * 24 * 60;
int retry_delay_ms = 1000;
double retry_factor = 2;
int retry_ceiling_ms = 60 * 60 * 1000;

std::int64_t microseconds(int milliseconds) { return static_cast<std::int64_t>(milliseconds) * 1000; }

}  // namespace

void define_settings() {
    pg::define_int("durable_timers.lease", "How long a claim holds unless it is renewed.", &lease_ms, lease_ms, 1,
                   INT_MAX, GUC_UNIT_MS, pg::Reload::on_reload);
    pg::define_int("durable_timers.batch_size",
                   "How many timers one scan of the dispatcher takes at most; a backlog gets several scans a transaction.",
                   &batch, batch, 1, 100000, 0, pg::Reload::on_reload);
    pg::define_int("durable_timers.handler_timeout", "How long a handler may run before it is interrupted.",
                   &handler_timeout_ms, handler_timeout_ms, 1, INT_MAX, GUC_UNIT_MS, pg::Reload::on_reload);
    pg::define_int("durable_timers.retention", "How long fired and cancelled timers are kept; -1: for ever.",
                   &retention_minutes, retention_minutes, -1, INT_MAX, GUC_UNIT_MIN, pg::Reload::on_reload);
    pg::define_int("durable_timers.retry_delay", "After how long a handler that failed is tried again.",
                   &retry_delay_ms, retry_delay_ms, 0, INT_MAX, GUC_UNIT_MS, pg::Reload::on_reload);
    pg::define_real("durable_timers.retry_factor", "By how much that grows with every further failure.", &retry_factor,
                    retry_factor, 1, 1000, pg::Reload::on_reload);
    pg::define_int("durable_timers.retry_ceiling", "The longest time until a handler that failed is tried again.",
                   &retry_ceiling_ms, retry_ceiling_ms, 0, INT_MAX, GUC_UNIT_MS, pg::Reload::on_reload);
}

std::int64_t default_lease() { return microseconds(lease_ms); }
std::int64_t default_handler_timeout() { return microseconds(handler_timeout_ms); }
std::optional<std::int64_t> default_retention() {
    if (retention_minutes < 0) return std::nullopt;
    return microseconds(60 * 1000) * retention_minutes;
}
RetryDefaults retry_defaults() { return {microseconds(retry_delay_ms), retry_factor, microseconds(retry_ceiling_ms)}; }
int batch_size() { return batch; }

}  // namespace store

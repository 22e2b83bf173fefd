#include "store/settings.hpp"

#include "pg/server.hpp"
#include "pg/settings.hpp"

namespace store {

namespace {
int lease_ms = 5 * 60 * 1000;
int batch = 1000;
}  // namespace

void define_settings() {
    pg::define_int("durable_timers.lease", "How long a claim holds unless it is renewed.", &lease_ms, lease_ms, 1,
                   INT_MAX, GUC_UNIT_MS, pg::Reload::on_reload);
    pg::define_int("durable_timers.batch_size", "How many timers one transaction of the dispatcher fires at most.",
                   &batch, batch, 1, 100000, 0, pg::Reload::on_reload);
}

std::int64_t default_lease() { return static_cast<std::int64_t>(lease_ms) * 1000; }
int batch_size() { return batch; }

}  // namespace store

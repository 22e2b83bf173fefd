#include "pg/notify.hpp"

#include "pg/guard.hpp"

namespace pg {

namespace {
constexpr double nearly_full = 0.9;
}

bool ring(const std::string& channel) {
    const char* name = channel.c_str();
    return call([=] {
        if (DatumGetFloat8(DirectFunctionCall1(pg_notification_queue_usage, 0)) > nearly_full) return false;
        Async_Notify(name, nullptr);
        return true;
    });
}

}  // namespace pg

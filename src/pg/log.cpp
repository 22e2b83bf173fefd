#include "pg/log.hpp"

#include "pg/guard.hpp"

namespace pg {

namespace {

void report(int level, const char* message, const char* detail, const char* hint) {
    call([=] {
        ereport(level, errmsg_internal("durable_timers: %s", message),
                detail != nullptr ? errdetail_internal("%s", detail) : 0, hint != nullptr ? errhint("%s", hint) : 0);
    });
}

}  // namespace

void log(const std::string& message, const char* detail, const char* hint) {
    report(LOG, message.c_str(), detail, hint);
}

void warn(const std::string& message, const char* detail, const char* hint) {
    report(WARNING, message.c_str(), detail, hint);
}

}  // namespace pg

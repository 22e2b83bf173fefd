// The server's log.
#pragma once

#include <string>

namespace pg {

void log(const std::string& message, const char* detail = nullptr, const char* hint = nullptr);
void warn(const std::string& message, const char* detail = nullptr, const char* hint = nullptr);

}  // namespace pg

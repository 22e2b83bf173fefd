// NOTIFY from inside: sent when the transaction commits.
#pragma once

#include <string>

namespace pg {

// Rings `channel` without a message. False when the server's queue of notifications is nearly full, because some
// listener does not read: then a NOTIFY would make the commit fail, and with it what the bell is rung for.
bool ring(const std::string& channel);

}  // namespace pg

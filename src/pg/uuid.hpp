// UUIDs by libuuid.
#pragma once

#include <cstddef>

#include "pg/server.hpp"

namespace pg {

// UUIDv5 of `length` bytes in a namespace, in the current memory context.
Datum uuid_of_name(Datum name_space, const char* name, std::size_t length);

}  // namespace pg

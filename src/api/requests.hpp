// Unpacking and checking an array of timers.timer_request.
#pragma once

#include <vector>

#include "api/arguments.hpp"
#include "store/schedule.hpp"

namespace api {

// The requests in their order. A null in one of them raises 22004 and says where it is; names and times are checked by
// the row trigger, as for whoever writes by hand. What they hold lies in the array or in the current memory context.
std::vector<store::Request> requests_of(Datum array);

}  // namespace api

// The enum types of the SQL surface as C++ has them, and back.
#pragma once

#include <string>

#include "core/delivery.hpp"
#include "store/schedule.hpp"

namespace api {

// The label of any enum value.
std::string label_of(Datum value);

store::RearmMode mode_of(Datum rearm_mode);
Datum status_value(const char* label);
pg::Value outcome_value(store::Outcome outcome);
pg::Value delivery_value(core::Delivery delivery);

}  // namespace api

// How a process manager's timers leave the database.
#pragma once

#include <cstdint>

namespace core {

enum class Delivery : std::uint8_t { outbox, notify, handler, external };
inline constexpr const char* delivery_labels[] = {"outbox", "notify", "handler", "external"};
constexpr const char* label_of(Delivery delivery) { return delivery_labels[static_cast<int>(delivery)]; }

}  // namespace core

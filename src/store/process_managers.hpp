// Setting what a process manager's timers are delivered by.
#pragma once

#include "pg/statement.hpp"

namespace store {

// Null leaves a setting as it is.
struct Settings {
    pg::Value delivery;       // the enum's label as text
    pg::Value channel;
    pg::Value max_attempts;
    pg::Value lease;
};

void configure(Datum process_manager, const Settings& settings);

// False when it was so already.
bool set_paused(Datum process_manager, bool paused);

// Whether the process manager, as it is, has a channel.
bool has_channel(Datum process_manager);

}  // namespace store

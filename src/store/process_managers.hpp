// Setting what a process manager's timers are delivered by.
#pragma once

#include "pg/statement.hpp"

namespace store {

// Null leaves a setting as it is.
struct Settings {
    pg::Value delivery;       // the enum's label as text
    pg::Value channel;
    pg::Value handler;
    pg::Value run_as;         // a role's name
    pg::Value max_attempts;
    pg::Value lease;
    pg::Value retry_delay;
    pg::Value retry_factor;
    pg::Value retry_ceiling;
    pg::Value max_concurrent;
    pg::Value handler_timeout;
    pg::Value retention;
};

void configure(Datum process_manager, const Settings& settings);

// False when it was so already.
bool set_paused(Datum process_manager, bool paused);

// Whether the process manager, as it is, has one.
bool has_channel(Datum process_manager);
bool has_handler(Datum process_manager);

}  // namespace store

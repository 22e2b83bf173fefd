// timer_id() and the event id of a firing.

#include <cstring>

#include "api/function.hpp"
#include "core/event_name.hpp"
#include "pg/uuid.hpp"

extern "C" {
#include "mb/pg_wchar.h"
}

TIMERS_FUNCTION(timers_timer_id) {
    const Datum name_space = arguments.required(0, "namespace");
    const std::string_view name = api::view_of(arguments.required(1, "name"));
    // Other languages derive ids from UTF-8, whatever this database is encoded in.
    const char* utf8 = pg::call([=] {
        return pg_server_to_any(name.data(), static_cast<int>(name.size()), PG_UTF8);
    });
    // Converted text is a copy that ends in a zero; unconverted text is the original and does not.
    const std::size_t length = utf8 == name.data() ? name.size() : std::strlen(utf8);
    return {pg::uuid_of_name(name_space, utf8, length)};
}

TIMERS_FUNCTION(timers_event_id) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const core::Instant fire_at = DatumGetTimestampTz(arguments.required(1, "fire_at"));
    char name[core::event_name_size];
    const std::size_t length = core::write_event_name(fire_at, name);
    return {pg::uuid_of_name(timer_id, name, length)};
}

// configure(), pause(), unpause(), and the identity of the database.

#include <string>

#include "api/enums.hpp"
#include "api/function.hpp"
#include "store/arming.hpp"
#include "store/process_managers.hpp"
#include "store/values.hpp"

namespace {

// NOTIFY truncates nothing and refuses a channel of 64 bytes.
constexpr std::size_t longest_channel = NAMEDATALEN - 1;

void refuse(const char* argument, const std::string& why) {
    pg::raise(ERRCODE_INVALID_PARAMETER_VALUE, std::string("argument \"") + argument + "\" " + why);
}

// What belongs to the delivery that this version lacks.
void refuse_handlers(const api::Arguments& arguments) {
    static constexpr std::pair<int, const char*> later[] = {
        {3, "handler"},       {4, "run_as"},           {7, "retry_delay"},      {8, "retry_factor"},
        {9, "retry_ceiling"}, {10, "max_concurrent"},  {11, "handler_timeout"}, {12, "retention"}};
    for (const auto& [position, name] : later)
        if (!arguments.is_null(position))
            pg::raise(ERRCODE_FEATURE_NOT_SUPPORTED, std::string("argument \"") + name + "\" is not supported yet");
}

}  // namespace

TIMERS_FUNCTION(timers_configure) {
    const Datum process_manager = arguments.process_manager(0);
    store::Settings settings{arguments.optional(1), arguments.optional(2), arguments.optional(5),
                             arguments.optional(6)};
    refuse_handlers(arguments);
    if (!settings.channel.null) {
        const std::string_view channel = api::view_of(arguments.name(2, "channel"));
        if (channel.size() > longest_channel)
            refuse("channel", "must not be longer than " + std::to_string(longest_channel) + " bytes");
    }
    if (!settings.max_attempts.null && DatumGetInt32(settings.max_attempts.datum) < 0)
        refuse("max_attempts", "must not be negative");
    if (!settings.lease.null) arguments.positive_span(6, "lease");
    if (!settings.delivery.null) {
        const std::string delivery = api::label_of(settings.delivery.datum);
        if (delivery == "handler")
            pg::raise(ERRCODE_FEATURE_NOT_SUPPORTED, "delivery \"handler\" is not supported yet");
        if (delivery == "notify" && settings.channel.null && !store::has_channel(process_manager))
            refuse("channel", "must be given for delivery \"notify\"");
        settings.delivery = store::text_value(delivery);
    }
    store::configure(process_manager, settings);
    return {0};
}

TIMERS_FUNCTION(timers_identity) {
    (void)arguments;
    return store::text_value(store::own_identity());
}

TIMERS_FUNCTION(timers_pause) { return {BoolGetDatum(store::set_paused(arguments.process_manager(0), true))}; }

TIMERS_FUNCTION(timers_unpause) { return {BoolGetDatum(store::set_paused(arguments.process_manager(0), false))}; }

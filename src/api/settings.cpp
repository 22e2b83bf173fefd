// configure(), pause(), unpause(), and the identity of the database.

#include <string>

#include "api/enums.hpp"
#include "api/function.hpp"
#include "engine/lane_registry.hpp"
#include "pg/compat.hpp"
#include "pg/user_function.hpp"
#include "store/arming.hpp"
#include "store/process_managers.hpp"
#include "store/values.hpp"

namespace {

// NOTIFY truncates nothing and refuses a channel of 64 bytes.
constexpr std::size_t longest_channel = NAMEDATALEN - 1;

void refuse(const char* argument, const std::string& why) {
    api::refuse(ERRCODE_INVALID_PARAMETER_VALUE, argument, why);
}

// A handler that the caller may use: no role gets to run what its configurer could not.
pg::Value checked_handler(Datum handler) {
    const std::string name(api::view_of(handler));
    const Oid function = pg::find_function(name, store::timer_type());
    if (!OidIsValid(function))
        pg::raise(ERRCODE_UNDEFINED_FUNCTION, "argument \"handler\": function " + name + "(timers.timer) does not exist");
    if (!pg::returns(function, UUIDOID)) refuse("handler", "must be a function that returns one uuid");
    if (!pg::may_execute(GetUserId(), function))
        pg::raise(ERRCODE_INSUFFICIENT_PRIVILEGE, "permission denied for function " + name);
    return store::text_value(pg::function_name(function));
}

pg::Value checked_role(Oid role) {
    const char* name = pg::call([=] { return GetUserNameFromId(role, false); });
    if (!pg::call([=] { return pg::may_become(GetUserId(), role); }))
        pg::raise(ERRCODE_INSUFFICIENT_PRIVILEGE, std::string("must be a member of role \"") + name + "\"");
    return store::text_value(name);
}

void check_not_negative(const api::Arguments& arguments, int position, const char* name) {
    if (arguments.is_null(position)) return;
    if (arguments.span(position, name) < 0) refuse(name, "must not be negative");
}

pg::Value set_paused(const api::Arguments& arguments, bool paused) {
    const Datum process_manager = arguments.process_manager(0);
    engine::lock_lane(api::view_of(process_manager));
    return {BoolGetDatum(store::set_paused(process_manager, paused))};
}

}  // namespace

TIMERS_FUNCTION(timers_configure) {
    const Datum process_manager = arguments.process_manager(0);
    store::Settings settings{arguments.optional(1), arguments.optional(2),  arguments.optional(3),
                             arguments.optional(4), arguments.optional(5),  arguments.optional(6),
                             arguments.optional(7), arguments.optional(8),  arguments.optional(9),
                             arguments.optional(10), arguments.optional(11), arguments.optional(12)};

    if (!settings.channel.null) {
        const std::string_view channel = api::view_of(arguments.name(2, "channel"));
        if (channel.size() > longest_channel)
            refuse("channel", "must not be longer than " + std::to_string(longest_channel) + " bytes");
    }
    if (!settings.handler.null) settings.handler = checked_handler(arguments.name(3, "handler"));
    if (!settings.run_as.null) settings.run_as = checked_role(DatumGetObjectId(settings.run_as.datum));
    if (!settings.max_attempts.null && DatumGetInt32(settings.max_attempts.datum) < 0)
        refuse("max_attempts", "must not be negative");
    if (!settings.lease.null) arguments.positive_span(6, "lease");
    check_not_negative(arguments, 7, "retry_delay");
    if (!settings.retry_factor.null) {
        const double factor = DatumGetFloat8(settings.retry_factor.datum);
        if (!(factor >= 1 && factor <= 1000)) refuse("retry_factor", "must be from 1 to 1000");
    }
    check_not_negative(arguments, 9, "retry_ceiling");
    if (!settings.max_concurrent.null) arguments.positive_count(10, "max_concurrent");
    if (!settings.handler_timeout.null) arguments.positive_span(11, "handler_timeout");
    check_not_negative(arguments, 12, "retention");

    // Before the row is looked at: nobody else adds it meanwhile.
    engine::lock_lane(api::view_of(process_manager));
    const std::string delivery = settings.delivery.null ? "" : api::label_of(settings.delivery.datum);
    if (delivery == "notify" && settings.channel.null && !store::has_channel(process_manager))
        refuse("channel", "must be given for delivery \"notify\"");
    if (delivery == "handler" && settings.handler.null && !store::has_handler(process_manager))
        refuse("handler", "must be given for delivery \"handler\"");
    // Who names a handler stands for it, unless another role is named: then that one does.
    if (!settings.handler.null && settings.run_as.null) settings.run_as = checked_role(GetUserId());
    if (!settings.delivery.null) settings.delivery = store::text_value(delivery);
    store::configure(process_manager, settings);
    return {0};
}

TIMERS_FUNCTION(timers_identity) {
    (void)arguments;
    return store::text_value(store::own_identity());
}

TIMERS_FUNCTION(timers_pause) { return set_paused(arguments, true); }

TIMERS_FUNCTION(timers_unpause) { return set_paused(arguments, false); }

// claim_dead(), renew_resume(), complete_resume(), park_resume(), cancel_resume(), recover_expired_resumes().

#include "api/errors.hpp"
#include "api/function.hpp"
#include "engine/transaction_end.hpp"
#include "store/resume.hpp"

TIMERS_FUNCTION(timers_claim_dead) {
    arguments.positive_span(1, "lease");
    if (!arguments.is_null(2)) {
        const Datum expected = arguments.required(2, "expected_process_manager");
        api::check_process_manager(api::view_of(expected), "expected_process_manager");
    }
    if (!arguments.is_null(3) && DatumGetInt32(arguments.required(3, "expected_attempts")) < 0)
        api::refuse(ERRCODE_INVALID_PARAMETER_VALUE, "expected_attempts", "must not be negative");
    const store::ResumeRequest request{arguments.required(0, "timer_id"), arguments.required(1, "lease"),
                                       arguments.name(4, "claimed_by"), arguments.optional(2), arguments.optional(3)};
    engine::notes().touch();
    for (;;) {
        if (const auto claimed = store::claim_dead(request)) return {*claimed};
        api::refuse_resume(request);
    }
}

TIMERS_FUNCTION(timers_renew_resume) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const Datum token = arguments.required(1, "claim_token");
    arguments.positive_span(2, "lease");
    engine::notes().touch();
    const auto lease_until = store::renew_resume(timer_id, token, arguments.required(2, "lease"));
    api::require_resume(lease_until.has_value(), timer_id, token);
    return {TimestampTzGetDatum(*lease_until)};
}

TIMERS_FUNCTION(timers_complete_resume) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const Datum token = arguments.required(1, "claim_token");
    const Datum event_id = arguments.required(2, "event_id");
    engine::notes().touch();
    api::require_resume(store::complete_resume(timer_id, token, event_id), timer_id, token);
    return {0};
}

TIMERS_FUNCTION(timers_park_resume) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const Datum token = arguments.required(1, "claim_token");
    if (!arguments.is_null(2)) arguments.name(2, "reason");
    engine::notes().touch();
    api::require_resume(store::park_resume(timer_id, token, arguments.optional(2)), timer_id, token);
    return {0};
}

TIMERS_FUNCTION(timers_cancel_resume) {
    const Datum timer_id = arguments.required(0, "timer_id");
    const Datum token = arguments.required(1, "claim_token");
    engine::notes().touch();
    api::require_resume(store::cancel_resume(timer_id, token), timer_id, token);
    return {0};
}

TIMERS_FUNCTION(timers_recover_expired_resumes) {
    const core::Instant as_of = DatumGetTimestampTz(arguments.instant(0, "as_of"));
    engine::notes().touch();
    return {Int64GetDatum(store::recover_expired_resumes(as_of, INT64_MAX))};
}

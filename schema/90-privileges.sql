-- All privileges in one place: nothing is granted to PUBLIC. Functions in C switch to the rights of the owner of
-- the tables themselves, so that EXECUTE is all a role needs.

revoke all on all tables in schema timers from public;
revoke all on all functions in schema timers from public;
revoke all on type timers.timer_status, timers.schedule_outcome, timers.rearm_mode, timers.delivery,
    timers.timer_request, timers.claimed_timer, timers.timer_inspection from public;

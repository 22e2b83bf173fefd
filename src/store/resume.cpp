#include "store/resume.hpp"

#include "store/claim_sql.hpp"
#include "store/values.hpp"

namespace store {

namespace {

// The claim itself decides who wins: only its newest version tells whether the lease has ended, and a conflict looks at
// that. What stands beside a dead timer is left over from an UPDATE by hand. The attempts stay: a resume counts none.
constinit pg::Statement claim_dead_timer{R"sql(
with held as materialized (
    select t.timer_id, t.attempts, t.status operator(pg_catalog.=) 'dead' as dead
    from timers.timer t
    where t.timer_id operator(pg_catalog.=) $1
      and (t.status operator(pg_catalog.=) 'dead' or t.status operator(pg_catalog.=) 'resuming')
      and ($4 is null or t.process_manager operator(pg_catalog.=) $4)
      and ($5 is null or t.attempts operator(pg_catalog.=) $5)
    for no key update of t
), claimed as (
    insert into timers.claim as c (timer_id, token, kind, attempt, lease_until, claimed_by)
    select h.timer_id, pg_catalog.gen_random_uuid(), 'resume', h.attempts,
           pg_catalog.clock_timestamp() operator(pg_catalog.+) $2, $3
    from held h
    on conflict (timer_id) do update
    set token = excluded.token, kind = excluded.kind, attempt = excluded.attempt, claimed_at = excluded.claimed_at,
        lease_until = excluded.lease_until, claimed_by = excluded.claimed_by
    where c.kind operator(pg_catalog.<>) 'resume'
       or c.lease_until operator(pg_catalog.<=) pg_catalog.clock_timestamp()
       or (select h.dead from held h)
    returning c.timer_id, c.token, c.lease_until
)
update timers.timer t
set status = 'resuming', updated_at = pg_catalog.clock_timestamp()
from claimed c where t.timer_id operator(pg_catalog.=) c.timer_id
returning row(t.timer_id, t.process_manager, t.correlation_id, t.fire_at, t.payload, t.attempts, t.last_error,
              c.token, c.lease_until)::timers.claimed_timer)sql",
                                          UUIDOID, INTERVALOID, TEXTOID, TEXTOID, INT4OID};

constinit pg::Statement select_standing{R"sql(
select t.status::pg_catalog.text, t.process_manager, t.attempts,
       coalesce(t.status operator(pg_catalog.=) 'resuming' and c.kind operator(pg_catalog.=) 'resume'
                and c.lease_until operator(pg_catalog.>) pg_catalog.clock_timestamp(), false),
       coalesce(c.token operator(pg_catalog.=) $2, false), c.lease_until, c.claimed_by
from timers.timer t
left join timers.claim c on c.timer_id operator(pg_catalog.=) t.timer_id
where t.timer_id operator(pg_catalog.=) $1)sql",
                                        UUIDOID, UUIDOID};

// Locks the timer, too: in one transaction with its completion the order is then the same for all.
constexpr auto renew_text = SqlText(R"sql(
with held as materialized (
    select t.timer_id from timers.timer t
    where t.timer_id operator(pg_catalog.=) $1 and t.status operator(pg_catalog.=) 'resuming'
    for no key update of t
)
update timers.claim c
set lease_until = pg_catalog.clock_timestamp() operator(pg_catalog.+) $3
from held
where c.timer_id operator(pg_catalog.=) held.timer_id and c.token operator(pg_catalog.=) $2)sql") +
    resume_holds + R"sql(
returning c.lease_until)sql";

constinit pg::Statement renew_claim{renew_text.characters, UUIDOID, UUIDOID, INTERVALOID};

// Retention has long passed by where the timer stood when it died: it ends where it will pass by again.
constexpr auto complete_text = end_resume + R"sql(
update timers.timer t
set status = 'fired', fired_event_id = $3, died_at = null, updated_at = pg_catalog.clock_timestamp(),
    wake_at = greatest(t.wake_at, pg_catalog.clock_timestamp())
from freed where t.timer_id operator(pg_catalog.=) freed.timer_id)sql";

constinit pg::Statement complete_claim{complete_text.characters, UUIDOID, UUIDOID, UUIDOID};

constexpr auto park_text = end_resume + R"sql(
update timers.timer t
set status = 'dead', last_error = coalesce($3, t.last_error),
    died_at = coalesce(t.died_at, pg_catalog.clock_timestamp()), updated_at = pg_catalog.clock_timestamp()
from freed where t.timer_id operator(pg_catalog.=) freed.timer_id)sql";

constinit pg::Statement park_claim{park_text.characters, UUIDOID, UUIDOID, TEXTOID};

constexpr auto cancel_text = end_resume + R"sql(
update timers.timer t
set status = 'cancelled', died_at = null, updated_at = pg_catalog.clock_timestamp(),
    wake_at = greatest(t.wake_at, pg_catalog.clock_timestamp())
from freed where t.timer_id operator(pg_catalog.=) freed.timer_id)sql";

constinit pg::Statement cancel_claim{cancel_text.characters, UUIDOID, UUIDOID};

constexpr auto recover_text =
    end_lapsed("operator(pg_catalog.=) 'resume'", "'resuming'",
               "status = 'dead', died_at = coalesce(t.died_at, pg_catalog.clock_timestamp())");

constinit pg::Statement recover_claims{recover_text.characters, TIMESTAMPTZOID, INTERVALOID, INT8OID};

}  // namespace

std::optional<Datum> claim_dead(const ResumeRequest& request) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = claim_dead_timer.run({{request.timer_id}, {request.lease}, {request.claimed_by},
                                                request.expected_process_manager, request.expected_attempts});
    if (rows.empty()) return std::nullopt;
    const Datum claimed = rows.datum(0, 1);
    return pg::call([=] { return SPI_datumTransfer(claimed, false, -1); });
}

std::optional<ResumeStanding> resume_standing(Datum timer_id, pg::Value token) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_standing.run_latest({{timer_id}, token});
    if (rows.empty()) return std::nullopt;
    ResumeStanding standing;
    standing.status = text_of(rows.datum(0, 1));
    standing.process_manager = text_of(rows.datum(0, 2));
    standing.attempts = DatumGetInt32(rows.datum(0, 3));
    standing.held = DatumGetBool(rows.datum(0, 4));
    standing.by_token = DatumGetBool(rows.datum(0, 5));
    standing.lease_until = instant_at(rows, 0, 6, core::never);
    if (const pg::Value by = rows.value(0, 7); !by.null) standing.claimed_by = text_of(by.datum);
    return standing;
}

std::optional<core::Instant> renew_resume(Datum timer_id, Datum token, Datum lease) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = renew_claim.run({{timer_id}, {token}, {lease}});
    if (rows.empty()) return std::nullopt;
    return instant_of(rows.datum(0, 1));
}

bool complete_resume(Datum timer_id, Datum token, Datum event_id) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return complete_claim.run({{timer_id}, {token}, {event_id}}).count() > 0;
}

bool park_resume(Datum timer_id, Datum token, pg::Value reason) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return park_claim.run({{timer_id}, {token}, reason}).count() > 0;
}

bool cancel_resume(Datum timer_id, Datum token) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return cancel_claim.run({{timer_id}, {token}}).count() > 0;
}

std::int64_t recover_expired_resumes(core::Instant as_of, std::int64_t most) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return count_at(recover_claims.run({instant_value(as_of), pg::null_value, {Int64GetDatum(most)}}), 0, 1);
}

}  // namespace store

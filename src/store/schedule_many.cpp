#include "store/schedule_many.hpp"

#include <unordered_map>

#include "store/schedule_sql.hpp"
#include "store/values.hpp"

namespace store {

namespace {

// Every statement takes the requests as $1, as record[]: the oid of timers.timer_request[] is another one in every
// database.
constexpr SqlText requests_text = R"sql(
rows from (pg_catalog.unnest($1) as (
    timer_id pg_catalog.uuid, process_manager pg_catalog.text, correlation_id pg_catalog.text,
    fire_at pg_catalog.timestamptz, payload pg_catalog.jsonb)) with ordinality
    as a (timer_id, process_manager, correlation_id, fire_at, payload, place))sql";

constexpr auto missing_text = SqlText(R"sql(
select a.place,
       case when a.timer_id is null then 'timer_id' when a.process_manager is null then 'process_manager'
            when a.correlation_id is null then 'correlation_id' when a.fire_at is null then 'fire_at'
            else 'payload' end
from)sql") + requests_text + R"sql(
where a.timer_id is null or a.process_manager is null or a.correlation_id is null or a.fire_at is null
   or a.payload is null
order by a.place limit 1)sql";

constexpr auto process_managers_text = SqlText(R"sql(
select distinct a.process_manager from)sql") + requests_text;

// $6 the mode, as by_mode_text has it.
constexpr auto upsert_text = SqlText(R"sql(
with upserted (timer_id, inserted) as ()sql") + insert_text + R"sql(
    select r.timer_id, r.process_manager, r.correlation_id, r.fire_at, r.payload
    from (
        select distinct on (a.timer_id) a.timer_id, a.process_manager, a.correlation_id, a.fire_at, a.payload
        from)sql" + requests_text + R"sql(
        order by a.timer_id, a.place desc) r
    order by r.timer_id)sql" + by_mode_text + R"sql(
)
select a.timer_id, u.inserted
from)sql" + requests_text + R"sql(
left join upserted u on u.timer_id operator(pg_catalog.=) a.timer_id
order by a.place)sql";

constinit pg::Statement select_missing{missing_text.characters, RECORDARRAYOID};
constinit pg::Statement select_process_managers{process_managers_text.characters, RECORDARRAYOID};
constinit pg::Statement upsert_many{
    upsert_text.characters, RECORDARRAYOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, TEXTOID};

constinit pg::Statement select_scheduled{R"sql(
select t.timer_id from timers.timer t
where t.timer_id operator(pg_catalog.=) any ($1) and t.status operator(pg_catalog.=) 'scheduled')sql",
                                         UUIDARRAYOID};

std::string bytes_of(Datum timer_id) {
    return {reinterpret_cast<const char*>(DatumGetUUIDP(timer_id)->data), UUID_LEN};
}

}  // namespace

std::optional<Missing> first_missing(Datum requests) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_missing.run({{requests}});
    if (rows.empty()) return std::nullopt;
    return Missing{DatumGetInt64(rows.datum(0, 1)), text_of(rows.datum(0, 2))};
}

std::vector<std::string> process_managers_of(Datum requests) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Rows rows = select_process_managers.run({{requests}});
    std::vector<std::string> names;
    for (std::uint64_t row = 0; row < rows.count(); row++) names.push_back(text_of(rows.datum(row, 1)));
    return names;
}

void schedule_many(Datum requests, RearmMode mode, const std::function<void(Datum, Outcome)>& visit) {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const pg::Value none = pg::null_value;
    const pg::Rows rows = upsert_many.run({{requests}, none, none, none, none, mode_value(mode)});

    // What was not touched has been locked, or was there first: the newest snapshot tells what it is.
    std::vector<Datum> untouched;
    for (std::uint64_t row = 0; row < rows.count(); row++)
        if (rows.value(row, 2).null) untouched.push_back(rows.datum(row, 1));
    std::unordered_map<std::string, Outcome> outcomes;
    if (!untouched.empty()) {
        const pg::Rows scheduled = select_scheduled.run_latest({uuid_array(untouched)});
        for (std::uint64_t row = 0; row < scheduled.count(); row++)
            outcomes.emplace(bytes_of(scheduled.datum(row, 1)), Outcome::kept);
    }
    for (std::uint64_t row = 0; row < rows.count(); row++) {
        const Datum id = rows.datum(row, 1);
        const pg::Value inserted = rows.value(row, 2);
        if (!inserted.null) {
            visit(id, DatumGetBool(inserted.datum) ? Outcome::inserted : Outcome::rearmed);
        } else {
            const auto found = outcomes.find(bytes_of(id));
            visit(id, found != outcomes.end() ? found->second : Outcome::too_late);
        }
    }
}

}  // namespace store

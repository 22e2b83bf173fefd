#include "store/timer_status.hpp"

#include "store/values.hpp"

namespace store {

namespace {
constinit pg::Statement select_status{R"sql(
select status::pg_catalog.text from timers.timer where timer_id operator(pg_catalog.=) $1)sql",
                                      UUIDOID};
}

std::optional<std::string> status_of(Datum timer_id) {
    const pg::Rows rows = select_status.run_latest({{timer_id}});
    if (rows.empty()) return std::nullopt;
    return text_of(rows.datum(0, 1));
}

Change change_of(bool changed, Datum timer_id) {
    if (changed) return Change::done;
    return status_of(timer_id) == "resuming" ? Change::guarded : Change::not_applicable;
}

}  // namespace store

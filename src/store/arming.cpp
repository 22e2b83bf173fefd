#include "store/arming.hpp"

#include "store/values.hpp"

namespace store {

namespace {

constinit pg::Statement select_armed{R"sql(
select 1 from timers.armed where identity operator(pg_catalog.=) $1 and restored_at is null)sql",
                                     TEXTOID};

constinit pg::Statement update_restored{R"sql(
update timers.armed set restored_at = pg_catalog.clock_timestamp() where restored_at is null)sql"};

}  // namespace

std::string own_identity() {
    return std::to_string(GetSystemIdentifier()) + "/" + std::to_string(MyDatabaseId);
}

bool is_armed() {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    return !select_armed.run({text_value(own_identity())}).empty();
}

void disarm() {
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    update_restored.run({});
}

}  // namespace store

#include "workers/member.hpp"

#include "pg/extension.hpp"

namespace workers {

bool Member::must_leave() {
    const engine::SharedLock lock;
    const engine::SharedDatabase* database = engine::find_database(MyDatabaseId);
    return database == nullptr || database->leaving > 0;
}

void Member::set_presence(engine::Presence presence) {
    const engine::SharedLock lock;
    if (engine::SharedDatabase* database = engine::find_database(MyDatabaseId)) {
        // It may have come back since we looked.
        if (presence == engine::Presence::absent && database->extension_changed) return;
        database->presence = presence;
    }
}

// DROP EXTENSION locks the extension first: while it is locked here, a pass and a drop cannot deadlock over the tables.
bool Member::lock_extension() {
    Oid extension = InvalidOid;
    Oid owner = InvalidOid;
    if (!pg::find_extension(extension_name, &extension, &owner)) return false;
    pg::call([=] { LockDatabaseObject(ExtensionRelationId, extension, 0, AccessShareLock); });
    // It may have been dropped while we waited.
    if (!pg::find_extension(extension_name, &extension, &owner)) return false;
    // From the first time on not as the bootstrap superuser.
    if (owner != owner_) pg::call([=] { SetSessionAuthorization(owner, superuser_arg(owner)); });
    owner_ = owner;
    return true;
}

}  // namespace workers

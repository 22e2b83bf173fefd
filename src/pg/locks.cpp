#include "pg/locks.hpp"

#include <algorithm>

#include "pg/guard.hpp"

namespace pg {

namespace {
// Distinguishes our name locks from advisory locks, which use 1 and 2 here.
constexpr uint16 name_lock_class = 0x6474;

LOCKTAG tag_of(uint32 hash) {
    LOCKTAG tag;
    SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, hash, 0, name_lock_class);
    return tag;
}
}  // namespace

std::vector<LockHolder> table_writers(Oid table) {
    const LockData* locks = call([] { return GetLockStatusData(); });
    std::vector<LockHolder> writers;
    for (int i = 0; i < locks->nelements; i++) {
        const LockInstanceData& lock = locks->locks[i];
        if (lock.locktag.locktag_type != LOCKTAG_RELATION || lock.locktag.locktag_field1 != MyDatabaseId ||
            lock.locktag.locktag_field2 != table || (lock.holdMask & LOCKBIT_ON(RowExclusiveLock)) == 0)
            continue;
        writers.push_back(holder_of(lock));
    }
    return writers;
}

bool has_let_go(const LockHolder& holder, const std::vector<LockHolder>& writers) {
    // In the gap between its end in the proc array and the release of its locks a backend has no transaction id.
    return std::none_of(writers.begin(), writers.end(), [&](const LockHolder& writer) {
        return writer.backend == holder.backend &&
               (writer.transaction == holder.transaction || writer.transaction == InvalidLocalTransactionId);
    });
}

bool any_prepared(const std::vector<LockHolder>& writers) {
    return std::any_of(writers.begin(), writers.end(), [](const LockHolder& writer) { return writer.prepared; });
}

bool prepared_writers(Oid table) { return max_prepared_xacts > 0 && any_prepared(table_writers(table)); }

bool try_lock_name(uint32 hash) {
    const LOCKTAG tag = tag_of(hash);
    return call([&] { return LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL; });
}

void lock_name(uint32 hash) {
    const LOCKTAG tag = tag_of(hash);
    call([&] { LockAcquire(&tag, ExclusiveLock, false, false); });
}

}  // namespace pg

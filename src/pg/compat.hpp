// Differences between server versions, each under one name. The only file that names PG_VERSION_NUM.
#pragma once

#include "pg/server.hpp"

#if PG_VERSION_NUM < 150000
#error "durable_timers needs PostgreSQL 15 or later"
#endif

namespace pg {

// Who holds a lock, as pg_locks counts: a transaction by the backend that began it. A prepared one keeps that identity
// until the server restarts, but no process stands behind it.
struct LockHolder {
    int backend;
    LocalTransactionId transaction;
    bool prepared;
};

inline LockHolder holder_of(const LockInstanceData& lock) {
#if PG_VERSION_NUM >= 170000
    return {lock.vxid.procNumber, lock.vxid.localTransactionId, lock.pid == 0};
#else
    return {lock.backend, lock.lxid, lock.pid == 0};
#endif
}

// This process, as LockHolder counts.
inline int own_backend() {
#if PG_VERSION_NUM >= 170000
    return MyProcNumber;
#else
    return MyBackendId;
#endif
}

inline bool owns_database(Oid database, Oid role) {
#if PG_VERSION_NUM >= 160000
    return object_ownercheck(DatabaseRelationId, database, role);
#else
    return pg_database_ownercheck(database, role);
#endif
}

// Whether a member may act as a role.
inline bool may_become(Oid member, Oid role) {
#if PG_VERSION_NUM >= 160000
    return member_can_set_role(member, role);
#else
    return is_member_of_role(member, role);
#endif
}

inline bool may_execute(Oid role, Oid function) {
#if PG_VERSION_NUM >= 160000
    return object_aclcheck(ProcedureRelationId, function, role, ACL_EXECUTE) == ACLCHECK_OK;
#else
    return pg_proc_aclcheck(function, role, ACL_EXECUTE) == ACLCHECK_OK;
#endif
}

// A possibly qualified name as the parser has it.
inline List* name_list(const char* name) {
#if PG_VERSION_NUM >= 160000
    return stringToQualifiedNameList(name, nullptr);
#else
    return stringToQualifiedNameList(name);
#endif
}

inline WaitEventSet* create_wait_event_set(int events) {
#if PG_VERSION_NUM >= 170000
    return CreateWaitEventSet(nullptr, events);
#else
    return CreateWaitEventSet(TopMemoryContext, events);
#endif
}

// The name of a wait that pg_stat_activity shows.
inline uint32 wait_event(const char* name) {
#if PG_VERSION_NUM >= 170000
    return WaitEventExtensionNew(name);
#else
    (void)name;
    return PG_WAIT_EXTENSION;
#endif
}

}  // namespace pg

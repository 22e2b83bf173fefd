// Hooks into the server's commands. A worker connected to a database is in the way of whoever drops, renames, moves
// or copies it, and the server has no means to ask it to leave: so before such a command the workers are sent away,
// if the user may run the command at all, and they come back when the command's transaction has ended. The other
// hooks only note what workers must hear of when the transaction ends.

#include <csignal>
#include <cstring>
#include <vector>

#include "engine/calls.hpp"
#include "engine/shared.hpp"
#include "engine/transaction_end.hpp"
#include "pg/clock.hpp"
#include "pg/compat.hpp"
#include "pg/extension.hpp"
#include "pg/guard.hpp"
#include "workers/member.hpp"
#include "workers/workers.hpp"

extern "C" {
#include "commands/defrem.h"
}

namespace workers {

namespace {

ProcessUtility_hook_type next_process_utility = nullptr;
object_access_hook_type next_object_access = nullptr;

// How long a command waits for the workers to leave; the server's own wait for other sessions comes after.
constexpr std::int64_t longest_wait = 10 * core::second;

// The databases that this transaction keeps free of workers.
std::vector<Oid>& kept_free() {
    static auto* const lasting = new std::vector<Oid>;
    return *lasting;
}
bool databases_changed = false;

bool ask_to_leave(Oid database) {
    const engine::SharedLock lock;
    engine::SharedDatabase* place = engine::find_database(database);
    if (place == nullptr) return false;
    place->leaving++;
    if (place->dispatcher_latch != nullptr) SetLatch(place->dispatcher_latch);
    // A handler is interrupted, and its attempt given back.
    for (const engine::HandlerPlace& handler : place->handlers)
        if (handler.pid != 0) kill(handler.pid, SIGTERM);
    return true;
}

bool has_left(Oid database) {
    const engine::SharedLock lock;
    const engine::SharedDatabase* place = engine::find_database(database);
    return place == nullptr || (place->dispatcher_pid == 0 && engine::handlers_at_work(*place) == 0);
}

// A worker cannot wait for itself to leave; a handler, or a trigger under the dispatcher, may try.
bool is_own_worker(Oid database) {
    const engine::SharedLock lock;
    const engine::SharedDatabase* place = engine::find_database(database);
    return place != nullptr && (place->dispatcher_pid == MyProcPid || engine::is_handler(*place, MyProcPid));
}

// Sends the database's workers away until this transaction ends.
void keep_free(Oid database) {
    if (is_own_worker(database))
        pg::raise(ERRCODE_OBJECT_IN_USE, "a worker of durable_timers cannot run a command that sends the workers away",
                  "The command came from a handler or a trigger.", "Run it in a session.");
    kept_free().reserve(kept_free().size() + 1);
    if (!ask_to_leave(database)) return;
    kept_free().push_back(database);
    const std::int64_t deadline = pg::monotonic_clock() + longest_wait;
    while (!has_left(database) && pg::monotonic_clock() < deadline) {
        pg::call([] {
            WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, 10, PG_WAIT_EXTENSION);
            ResetLatch(MyLatch);
            CHECK_FOR_INTERRUPTS();
        });
    }
}

void on_transaction_end(XactEvent event, void*) {
    if (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT) return;
    if (kept_free().empty() && !databases_changed) return;
    const engine::SharedLock lock;
    for (const Oid database : kept_free())
        if (engine::SharedDatabase* place = engine::find_database(database)) place->leaving--;
    kept_free().clear();
    databases_changed = false;
    engine::wake_launcher();
}

const char* option_of(List* options, const char* name) {
    ListCell* cell;
    foreach (cell, options) {
        auto* option = static_cast<DefElem*>(lfirst(cell));
        if (std::strcmp(option->defname, name) == 0 && option->arg != nullptr) return defGetString(option);
    }
    return nullptr;
}

bool may_create_databases() {
    if (superuser()) return true;
    HeapTuple role = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
    if (!HeapTupleIsValid(role)) return false;
    const bool may = reinterpret_cast<Form_pg_authid>(GETSTRUCT(role))->rolcreatedb;
    ReleaseSysCache(role);
    return may;
}

bool is_template(Oid database) {
    HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
    if (!HeapTupleIsValid(tuple)) return false;
    const bool is = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->datistemplate;
    ReleaseSysCache(tuple);
    return is;
}

// Whether the command takes or changes this extension, and the user may: a handler that runs holds the extension's lock
// until it ends.
bool concerns_extension(const Node* statement) {
    bool named = false;
    if (IsA(statement, AlterExtensionStmt)) {
        named = std::strcmp(reinterpret_cast<const AlterExtensionStmt*>(statement)->extname, extension_name) == 0;
    } else if (IsA(statement, DropStmt)) {
        const auto* drop = reinterpret_cast<const DropStmt*>(statement);
        ListCell* cell;
        if (drop->removeType == OBJECT_EXTENSION)
            foreach (cell, drop->objects)
                named |= std::strcmp(strVal(lfirst(cell)), extension_name) == 0;
    }
    Oid extension = InvalidOid;
    Oid owner = InvalidOid;
    return named && pg::find_extension(extension_name, &extension, &owner) && has_privs_of_role(GetUserId(), owner);
}

// The database that the command needs free of sessions, if the user may run it; InvalidOid otherwise.
Oid database_to_free(const Node* statement) {
    const char* name = nullptr;
    bool copies = false;
    if (IsA(statement, DropdbStmt)) {
        name = reinterpret_cast<const DropdbStmt*>(statement)->dbname;
    } else if (IsA(statement, RenameStmt)) {
        const auto* rename = reinterpret_cast<const RenameStmt*>(statement);
        if (rename->renameType == OBJECT_DATABASE) name = rename->subname;
    } else if (IsA(statement, AlterDatabaseStmt)) {
        const auto* alter = reinterpret_cast<const AlterDatabaseStmt*>(statement);
        if (option_of(alter->options, "tablespace") != nullptr) name = alter->dbname;
    } else if (IsA(statement, CreatedbStmt)) {
        const char* source = option_of(reinterpret_cast<const CreatedbStmt*>(statement)->options, "template");
        name = source != nullptr ? source : "template1";
        copies = true;
    }
    if (name == nullptr) return InvalidOid;
    const Oid database = get_database_oid(name, true);
    if (!OidIsValid(database)) return InvalidOid;
    const bool owner = pg::owns_database(database, GetUserId());
    const bool may = copies ? may_create_databases() && (owner || is_template(database)) : owner;
    return may ? database : InvalidOid;
}

void before_command(const Node* statement) {
    if (IsA(statement, TransactionStmt)) {
        const auto kind = reinterpret_cast<const TransactionStmt*>(statement)->kind;
        if (kind == TRANS_STMT_COMMIT_PREPARED || kind == TRANS_STMT_ROLLBACK_PREPARED)
            engine::note_prepared_finished();
        return;
    }
    if (IsA(statement, DropStmt) || IsA(statement, AlterExtensionStmt)) {
        if (pg::call([=] { return concerns_extension(statement); })) keep_free(MyDatabaseId);
        return;
    }
    if (!IsA(statement, DropdbStmt) && !IsA(statement, RenameStmt) && !IsA(statement, AlterDatabaseStmt) &&
        !IsA(statement, CreatedbStmt))
        return;
    const Oid database = pg::call([=] { return database_to_free(statement); });
    if (OidIsValid(database)) keep_free(database);
    // One may have come, or may be open to connections now.
    if (IsA(statement, CreatedbStmt) || IsA(statement, AlterDatabaseStmt)) databases_changed = true;
}

// The rest of the chain may raise an error: no object with a destructor lives in this frame then.
void process_utility(PlannedStmt* planned, const char* query, bool read_only_tree, ProcessUtilityContext context,
                     ParamListInfo parameters, QueryEnvironment* environment, DestReceiver* receiver,
                     QueryCompletion* completion) {
    const Node* statement = planned->utilityStmt;
    pg::entry([=] { before_command(statement); });
    const auto next = next_process_utility != nullptr ? next_process_utility : standard_ProcessUtility;
    next(planned, query, read_only_tree, context, parameters, environment, receiver, completion);
}

// CREATE, ALTER UPDATE and DROP EXTENSION, and whatever else brings or takes one.
void on_object_access(ObjectAccessType access, Oid catalog, Oid object, int column, void* argument) {
    if (next_object_access != nullptr) next_object_access(access, catalog, object, column, argument);
    if (catalog == ExtensionRelationId && (access == OAT_POST_CREATE || access == OAT_POST_ALTER || access == OAT_DROP))
        engine::note_extension_changed();
}

}  // namespace

void install_hooks() {
    next_process_utility = ProcessUtility_hook;
    ProcessUtility_hook = process_utility;
    next_object_access = object_access_hook;
    object_access_hook = on_object_access;
    RegisterXactCallback(on_transaction_end, nullptr);
}

}  // namespace workers

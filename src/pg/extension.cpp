#include "pg/extension.hpp"

#include "pg/guard.hpp"

extern "C" {
#include "access/genam.h"
#include "utils/fmgroids.h"
}

namespace pg {

bool find_extension(const char* name, Oid* extension, Oid* owner) {
    return call([=] {
        Relation catalog = table_open(ExtensionRelationId, AccessShareLock);
        ScanKeyData key;
        ScanKeyInit(&key, Anum_pg_extension_extname, BTEqualStrategyNumber, F_NAMEEQ, CStringGetDatum(name));
        SysScanDesc scan = systable_beginscan(catalog, ExtensionNameIndexId, true, nullptr, 1, &key);
        HeapTuple tuple = systable_getnext(scan);
        const bool found = HeapTupleIsValid(tuple);
        if (found) {
            const auto* form = reinterpret_cast<Form_pg_extension>(GETSTRUCT(tuple));
            *extension = form->oid;
            *owner = form->extowner;
        }
        systable_endscan(scan);
        table_close(catalog, AccessShareLock);
        return found;
    });
}

std::string own_database() {
    const char* name = call([] { return get_database_name(MyDatabaseId); });
    return name != nullptr ? name : "";
}

Oid find_table(const char* schema, const char* table) {
    return call([=] { return get_relname_relid(table, get_namespace_oid(schema, true)); });
}

}  // namespace pg

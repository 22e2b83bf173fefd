#include "api/enums.hpp"

#include <string>

#include "pg/guard.hpp"

extern "C" {
#include "catalog/pg_enum.h"
}

namespace api {

namespace {

Datum enum_value(const char* type, const char* label) {
    return pg::call([=] {
        const Oid schema = get_namespace_oid("timers", false);
        const Oid enum_type = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid, CStringGetDatum(type), ObjectIdGetDatum(schema));
        HeapTuple tuple = SearchSysCache2(ENUMTYPOIDNAME, ObjectIdGetDatum(enum_type), CStringGetDatum(label));
        if (!HeapTupleIsValid(tuple)) elog(ERROR, "enum timers.%s has no label \"%s\"", type, label);
        const Oid value = reinterpret_cast<Form_pg_enum>(GETSTRUCT(tuple))->oid;
        ReleaseSysCache(tuple);
        return ObjectIdGetDatum(value);
    });
}

}  // namespace

std::string label_of(Datum value) {
    return pg::call([=] { return DatumGetCString(DirectFunctionCall1(enum_out, value)); });
}

store::RearmMode mode_of(Datum rearm_mode) {
    const std::string label = label_of(rearm_mode);
    if (label == "later") return store::RearmMode::later;
    if (label == "earlier") return store::RearmMode::earlier;
    if (label == "keep") return store::RearmMode::keep;
    return store::RearmMode::replace;
}

Datum status_value(const char* label) { return enum_value("timer_status", label); }

pg::Value outcome_value(store::Outcome outcome) {
    static constexpr const char* labels[] = {"inserted", "rearmed", "kept", "too_late"};
    return {enum_value("schedule_outcome", labels[static_cast<int>(outcome)])};
}

pg::Value delivery_value(core::Delivery delivery) { return {enum_value("delivery", core::label_of(delivery))}; }

}  // namespace api

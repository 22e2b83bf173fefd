#include "pg/uuid.hpp"

#include <uuid/uuid.h>

#include "pg/guard.hpp"

namespace pg {

Datum uuid_of_name(Datum name_space, const char* name, std::size_t length) {
    auto* result = call([] { return static_cast<pg_uuid_t*>(palloc(sizeof(pg_uuid_t))); });
    uuid_generate_sha1(result->data, DatumGetUUIDP(name_space)->data, name, length);
    return UUIDPGetDatum(result);
}

}  // namespace pg

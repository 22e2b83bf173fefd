// The extension as the catalog of the current database knows it.
#pragma once

#include <string>

#include "pg/server.hpp"

namespace pg {

// Whether `name` is installed in this database; `owner` receives its owner.
bool find_extension(const char* name, Oid* extension, Oid* owner);

// The name of the current database.
std::string own_database();

// A table by schema and name; InvalidOid when either is missing.
Oid find_table(const char* schema, const char* table);

}  // namespace pg

#include "pg/settings.hpp"

#include "pg/server.hpp"

namespace pg {

namespace {
GucContext context_of(Reload reload) { return reload == Reload::on_start ? PGC_POSTMASTER : PGC_SIGHUP; }
}  // namespace

void define_bool(const char* name, const char* description, bool* variable, bool initial, Reload reload) {
    DefineCustomBoolVariable(name, description, nullptr, variable, initial, context_of(reload), 0, nullptr, nullptr,
                             nullptr);
}

void define_int(const char* name, const char* description, int* variable, int initial, int least, int most, int unit,
                Reload reload) {
    DefineCustomIntVariable(name, description, nullptr, variable, initial, least, most, context_of(reload), unit,
                            nullptr, nullptr, nullptr);
}

void define_real(const char* name, const char* description, double* variable, double initial, double least, double most,
                 Reload reload) {
    DefineCustomRealVariable(name, description, nullptr, variable, initial, least, most, context_of(reload), 0, nullptr,
                             nullptr, nullptr);
}

void reserve_setting_prefix(const char* prefix) { MarkGUCPrefixReserved(prefix); }

}  // namespace pg

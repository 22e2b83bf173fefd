// Thin wrapping of custom settings (GUCs): definition only; their meaning is their owner's.
#pragma once

namespace pg {

enum class Reload { on_start, on_reload };

void define_bool(const char* name, const char* description, bool* variable, bool initial, Reload reload);
// `unit`: 0 for none, otherwise a GUC_UNIT_* flag.
void define_int(const char* name, const char* description, int* variable, int initial, int least, int most, int unit,
                Reload reload);
void define_real(const char* name, const char* description, double* variable, double initial, double least, double most,
                 Reload reload);
// No other setting may begin with this prefix.
void reserve_setting_prefix(const char* prefix);

}  // namespace pg

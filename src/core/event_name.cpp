#include "core/event_name.hpp"

namespace core {

namespace {
}

std::size_t write_event_name(Instant fire_at, char (&name)[event_name_size]) {
    __int128 rest = static_cast<__int128>(fire_at) + from_1970_to_2000;
    const bool negative = rest < 0;
    if (negative) rest = -rest;

    char reversed[event_name_size];
    std::size_t digits = 0;
    do {
        reversed[digits++] = static_cast<char>('0' + static_cast<int>(rest % 10));
        rest /= 10;
    } while (rest != 0);

    std::size_t length = 0;
    if (negative) name[length++] = '-';
    while (digits > 0) name[length++] = reversed[--digits];
    name[length] = '\0';
    return length;
}

}  // namespace core

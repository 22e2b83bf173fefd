// Intent: the name that an event id is derived from is the decimal count of microseconds since 1970, for every instant
// that the server can hold.
#include "core/event_name.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <string>

namespace {

// The server's epoch, 2000-01-01, as every other language counts it.
constexpr core::Instant unix_epoch = -946'684'800'000'000;

// The name, and a check that exactly its characters and one closing zero were written.
std::string name_of(core::Instant fire_at) {
    constexpr char untouched = '#';
    char name[core::event_name_size];
    std::memset(name, untouched, sizeof name);
    const std::size_t length = core::write_event_name(fire_at, name);
    EXPECT_LT(length, sizeof name);
    EXPECT_EQ(name[length], '\0');
    for (std::size_t i = length + 1; i < sizeof name; i++) EXPECT_EQ(name[i], untouched) << "at " << i;
    return {name, length};
}

TEST(EventName, IsZeroAtTheUnixEpoch) { EXPECT_EQ(name_of(unix_epoch), "0"); }

TEST(EventName, CountsOnBothSidesOfTheUnixEpoch) {
    EXPECT_EQ(name_of(unix_epoch + 1), "1");
    EXPECT_EQ(name_of(unix_epoch - 1), "-1");
    EXPECT_EQ(name_of(unix_epoch + 10), "10");
    EXPECT_EQ(name_of(unix_epoch - 1'000'000), "-1000000");
}

TEST(EventName, OfTheServersEpoch) { EXPECT_EQ(name_of(0), "946684800000000"); }

TEST(EventName, OfAnOrdinaryInstant) {
    // 2024-02-29 12:34:56.789012+00
    EXPECT_EQ(name_of(762'525'296'789'012), "1709210096789012");
}

TEST(EventName, OfTheFirstTimestamp) {
    // 4714-11-24 00:00:00+00 BC
    EXPECT_EQ(name_of(-211'813'488'000'000'000), "-210866803200000000");
}

TEST(EventName, OfTheLastTimestampWhichNeedsMoreThan64Bits) {
    // 294276-12-31 23:59:59.999999+00
    EXPECT_EQ(name_of(9'223'371'331'199'999'999), "9224318015999999999");
}

TEST(EventName, FitsWhateverTheBitsAre) {
    EXPECT_EQ(name_of(std::numeric_limits<core::Instant>::max()), "9224318721654775807");
    EXPECT_EQ(name_of(std::numeric_limits<core::Instant>::min()), "-9222425352054775808");
}

TEST(EventName, DiffersForEveryPowerOfTen) {
    core::Instant power = 1;
    std::string digits = "1";
    for (int i = 0; i < 18; i++, power *= 10, digits += '0') {
        EXPECT_EQ(name_of(unix_epoch + power), digits);
        EXPECT_EQ(name_of(unix_epoch - power), "-" + digits);
    }
}

}  // namespace

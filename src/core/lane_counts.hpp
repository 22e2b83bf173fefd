// What has happened in a lane, counted: by the row trigger, which sees every change of a timer whoever makes it, and by
// whoever knows more than the row tells. Zero when its memory is, so that it can live in shared memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/delivery.hpp"
#include "core/histogram.hpp"
#include "core/instant.hpp"

namespace core {

enum class TimerStatus : std::uint8_t { scheduled, firing, fired, cancelled, dead, resuming };
inline constexpr const char* timer_status_labels[] = {"scheduled", "firing", "fired", "cancelled", "dead", "resuming"};

// What guarded claims of dead timers came to, by the state that the timer got.
enum class Resume : std::uint8_t { claimed, fired, dead, cancelled };
inline constexpr const char* resume_labels[] = {"claimed", "fired", "dead", "cancelled"};

struct LaneCounts {
    // By the row trigger.
    std::uint64_t fired;
    std::uint64_t cancelled;
    std::uint64_t dead_lettered;
    std::uint64_t retried;              // dead timers that were scheduled again
    std::uint64_t requeued;             // firings that were taken back, due as before
    std::uint64_t resumes[4];           // by Resume
    SpanHistogram lag;                  // of each attempt behind fire_at
    AttemptHistogram attempts;          // which attempt of its timer each was

    // By whoever delivers.
    std::uint64_t delivered[4];         // by Delivery: events, notifications, claims by handler workers and by others
    std::uint64_t delivery_failures;    // firings into the outbox or by NOTIFY that raised an error
    std::uint64_t handler_failures;     // handlers that raised an error or took too long
    std::uint64_t skipped;              // rows that the dispatcher passed over because somebody held them

    void add(const LaneCounts& other);
};

// A timer's row, as far as counting goes.
struct TimerState {
    TimerStatus status;
    std::int32_t attempts;
    Instant fire_at;
};

// A row has changed at `now`.
void count_change(LaneCounts& counts, const TimerState& was, const TimerState& is, Instant now);

}  // namespace core

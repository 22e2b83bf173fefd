// A handler worker: runs the SQL handlers of one database's timers, one at a time. Started by the launcher when there is
// work for it, and gone again when there has been none for a while. Policy is engine/handling.hpp; here are only the
// process, its transactions and its sleep.

#include <csignal>
#include <ctime>
#include <utility>

#include "engine/calls.hpp"
#include "engine/handling.hpp"
#include "pg/alarm.hpp"
#include "pg/clock.hpp"
#include "pg/compat.hpp"
#include "pg/transaction.hpp"
#include "pg/user_function.hpp"
#include "workers/member.hpp"
#include "workers/process.hpp"
#include "workers/workers.hpp"

namespace workers {

namespace {

constexpr std::int64_t idle_time = 10 * core::second;

// SIGTERM ends the process, unless it holds a claim, whose attempt is to be given back: then it interrupts the handler
// alone, or a commit's wait for a standby, and the process goes in good order. What is still there a second later, for
// the handler may catch the interruption, is ended by a signal of its own: the postmaster sends each SIGTERM twice, to
// the process and to its group.
volatile sig_atomic_t holds_claim = false;
volatile sig_atomic_t sent_away = false;
timer_t last_signal;

void on_terminate(SIGNAL_ARGS) {
    if (!holds_claim) {
        die(postgres_signal_arg);
        return;
    }
    if (sent_away) return;
    const int saved_errno = errno;
    sent_away = true;
    QueryCancelPending = true;
    if (pg::user_function_runs) InterruptPending = true;
    SetLatch(MyLatch);
    constexpr itimerspec in_a_second{{0, 0}, {1, 0}};
    timer_settime(last_signal, 0, &in_a_second, nullptr);
    errno = saved_errno;
}

void prepare_last_signal() {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGUSR2;
    if (timer_create(CLOCK_MONOTONIC, &event, &last_signal) != 0)
        pg::call([] { ereport(ERROR, errcode_for_file_access(), errmsg("could not create a timer: %m")); });
    pqsignal(SIGUSR2, die);
}

// From here on SIGTERM spares the claim; if it has come before, the claim is rolled back.
void hold_claim() {
    holds_claim = true;
    pg::call([] { CHECK_FOR_INTERRUPTS(); });
}

// Whether the server or a command sends the worker away, rather than somebody the handler, or the handler itself. The
// launcher goes at about the same time when the server shuts down.
bool sent_away_for_good() {
    constexpr std::int64_t longest_wait = 200 * core::millisecond;
    if (!sent_away) return false;
    const std::int64_t deadline = pg::monotonic_clock() + longest_wait;
    do {
        if (Member::must_leave()) return true;
        {
            const engine::SharedLock lock;
            if (!engine::has_launcher()) return true;
        }
        pg_usleep(5000);
    } while (pg::monotonic_clock() < deadline);
    return false;
}

void leave(int, Datum) { engine::leave_handlers(); }

class HandlerProcess {
public:
    // Until nothing is left to do, or somebody wants the process gone.
    void run() {
        std::int64_t idle_since = pg::monotonic_clock();
        while (!sent_away && !member_.must_leave()) {
            handle_interrupts();
            if (engine::leave_if_surplus()) return;
            const std::optional<engine::Turn> turn = engine::take_turn();
            if (turn) {
                if (!serve(*turn)) return;
                idle_since = pg::monotonic_clock();
                continue;
            }
            if (pg::monotonic_clock() - idle_since >= idle_time) return;
            pg::show_idle("waiting for timers with handlers");
            alarm_.sleep_until(pg::wall_clock() + idle_time, idle_time, wait_);
        }
    }

private:
    // Handles a timer of the lane, and more as long as no other lane waits and the configuration is not to be read
    // anew; false when the extension is gone.
    bool serve(const engine::Turn& turn) {
        std::optional<engine::Claimed> claimed;
        engine::TurnEnd end = engine::TurnEnd::claimed;
        const std::string claiming = "claiming a timer of process manager \"" + turn.lane + "\"";
        bool installed = member_.in_transaction(claiming.c_str(), [&] {
            end = handling_.claim(turn.lane, claimed);
            if (claimed) hold_claim();
        });
        while (installed && claimed) {
            const engine::Claimed current = std::move(*claimed);
            claimed.reset();
            const std::string running =
                "running handler " + current.settings.function + " of process manager \"" + turn.lane + "\"";
            installed = member_.in_transaction(running.c_str(), [&] {
                if (sent_away)
                    engine::give_back(current);
                else
                    engine::handle(current, sent_away_for_good);
                // The next claim shares the commit.
                if (!sent_away && !ConfigReloadPending && engine::turn_goes_on())
                    end = handling_.claim(turn.lane, claimed);
                if (sent_away) pg::commit_locally();
            });
            holds_claim = claimed.has_value();
            pg::release_session_locks();
        }
        engine::Handling::end(turn, end);
        return installed;
    }

    Member member_;
    engine::Handling handling_;
    pg::Alarm alarm_;
    uint32 wait_ = pg::wait_event("DurableTimersHandlerIdle");
};

}  // namespace

bool start_handler(Oid database, BackgroundWorkerHandle** handle) {
    return start_worker("durable_timers handler", "durable_timers_handler_main", database, handle);
}

}  // namespace workers

extern "C" {
PGDLLEXPORT void durable_timers_handler_main(Datum argument);

void durable_timers_handler_main(Datum argument) {
    pqsignal(SIGINT, StatementCancelHandler);
    pg::entry([] { workers::prepare_last_signal(); });
    workers::unblock_signals(workers::on_terminate);
    workers::be_worker<workers::HandlerProcess>(argument, engine::join_handlers, workers::leave);
}
}

#include "store/schedule_many.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "store/schedule_sql.hpp"
#include "store/values.hpp"

namespace store {

namespace {

// The requests as arrays $1 to $5, a column each; $6 is the mode.
constexpr SqlText requests_text = R"sql(
select pg_catalog.unnest($1) as timer_id, pg_catalog.unnest($2) as process_manager,
       pg_catalog.unnest($3) as correlation_id, pg_catalog.unnest($4) as fire_at, pg_catalog.unnest($5) as payload)sql";

// As a range, the join has no other plan than to look up one request after the other, whatever the size of the table
// when it is made: neither merge nor hash join takes it, and without an order to gain the index is not read through.
constexpr SqlText looked_up = R"sql(
t.timer_id operator(pg_catalog.>=) excluded.timer_id and t.timer_id operator(pg_catalog.<=) excluded.timer_id)sql";

constexpr auto insert_all_text = insert_text(requests_text);
constexpr auto update_all_text = update_text(requests_text, looked_up, requested_time, as_mode_says);
constexpr auto upsert_all_text = upsert_text(requests_text, requested_time, as_mode_says);

constinit pg::Statement insert_all{
    insert_all_text.characters, UUIDARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, JSONBARRAYOID};
constinit pg::Statement update_all{
    update_all_text.characters, UUIDARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, JSONBARRAYOID, TEXTOID};
constinit pg::Statement upsert_all{
    upsert_all_text.characters, UUIDARRAYOID, TEXTARRAYOID, TEXTARRAYOID, TIMESTAMPTZARRAYOID, JSONBARRAYOID, TEXTOID};

constinit pg::Statement select_scheduled{R"sql(
select t.timer_id from timers.timer t
where t.timer_id operator(pg_catalog.=) any ($1) and t.status operator(pg_catalog.=) 'scheduled'
order by t.timer_id)sql",
                                         UUIDARRAYOID};

bool same(Datum left, Datum right) {
    return std::memcmp(DatumGetUUIDP(left)->data, DatumGetUUIDP(right)->data, UUID_LEN) == 0;
}

// A request's place in the order of ids; of those with the same id, in the order of requests.
struct Key {
    std::uint64_t high, low;
    std::size_t request;
    auto operator<=>(const Key&) const = default;
};

Key key_of(Datum timer_id, std::size_t request) {
    Key key{0, 0, request};
    const unsigned char* bytes = DatumGetUUIDP(timer_id)->data;
    for (std::size_t i = 0; i < 8; i++) {
        key.high = key.high << 8 | bytes[i];
        key.low = key.low << 8 | bytes[i + 8];
    }
    return key;
}

// Requests as the statements take them.
class Columns {
public:
    explicit Columns(std::span<const Request* const> requests)
        : ids_(column(requests, &Request::timer_id, UUIDOID)),
          process_managers_(column(requests, &Request::process_manager, TEXTOID)),
          correlation_ids_(column(requests, &Request::correlation_id, TEXTOID)),
          fire_ats_(column(requests, &Request::fire_at, TIMESTAMPTZOID)),
          payloads_(column(requests, &Request::payload, JSONBOID)) {}

    pg::Rows run(pg::Statement& statement, RearmMode mode) const {
        return statement.run({ids_, process_managers_, correlation_ids_, fire_ats_, payloads_, mode_value(mode)});
    }
    pg::Rows run_or_give_up(pg::Statement& statement) const {
        return statement.run_or_give_up({ids_, process_managers_, correlation_ids_, fire_ats_, payloads_});
    }

private:
    static pg::Value column(std::span<const Request* const> requests, Datum Request::*part, Oid type) {
        std::vector<Datum> values;
        values.reserve(requests.size());
        for (const Request* request : requests) values.push_back(request->*part);
        return array_of(values, type);
    }

    pg::Value ids_, process_managers_, correlation_ids_, fire_ats_, payloads_;
};

// Requests of which each has another id: of several with the same id the last.
class Batch {
public:
    explicit Batch(std::span<const Request> requests) : place_of_(requests.size()) {
        std::vector<Key> order;
        order.reserve(requests.size());
        for (std::size_t i = 0; i < requests.size(); i++) order.push_back(key_of(requests[i].timer_id, i));
        std::sort(order.begin(), order.end());
        std::vector<bool> superseded(requests.size());
        for (std::size_t i = 0; i < order.size(); i++) {
            const Key& key = order[i];
            if (i > 0 && key.high == order[i - 1].high && key.low == order[i - 1].low) {
                superseded[order[i - 1].request] = true;
                by_id_.pop_back();
            }
            by_id_.push_back(&requests[key.request]);
            place_of_[key.request] = by_id_.size() - 1;
        }
        for (std::size_t i = 0; i < requests.size(); i++)
            if (!superseded[i]) as_given_.push_back(&requests[i]);
    }

    std::size_t size() const { return by_id_.size(); }
    std::span<const Request* const> by_id() const { return by_id_; }
    std::span<const Request* const> as_given() const { return as_given_; }
    // Where in the order of ids a request's id stands.
    std::size_t place_of(std::size_t request) const { return place_of_[request]; }

private:
    std::vector<const Request*> by_id_;
    std::vector<const Request*> as_given_;
    std::vector<std::size_t> place_of_;
};

// The halves of the upsert for when all timers are new, or all are there to be moved. False when not, and then nothing
// is done and nothing locked: the upsert takes all of them anew, in the order of ids.

// In the order given, which suits the indexes best if it is that of time; so it must not wait for anybody.
bool insert_every(const Batch& batch) {
    constexpr auto in_the_way = [](int sqlstate) {
        return sqlstate == ERRCODE_UNIQUE_VIOLATION || sqlstate == ERRCODE_LOCK_NOT_AVAILABLE ||
               sqlstate == ERRCODE_T_R_DEADLOCK_DETECTED;
    };
    return !pg::attempt([&] { Columns(batch.as_given()).run_or_give_up(insert_all); }, in_the_way);
}

bool update_every(const Batch& batch, RearmMode mode) {
    return pg::keep_if([&] { return Columns(batch.by_id()).run(update_all, mode).count() == batch.size(); });
}

// What the upsert came to, for each id.
std::vector<Outcome> upsert_every(const Batch& batch, RearmMode mode) {
    std::vector<Outcome> outcomes(batch.size(), Outcome::too_late);
    std::vector<std::size_t> untouched;
    const auto requests = batch.by_id();
    const pg::Rows rows = Columns(requests).run(upsert_all, mode);
    std::uint64_t row = 0;
    for (std::size_t place = 0; place < batch.size(); place++) {
        if (row < rows.count() && same(rows.datum(row, 1), requests[place]->timer_id))
            outcomes[place] = DatumGetBool(rows.datum(row++, 2)) ? Outcome::inserted : Outcome::rearmed;
        else
            untouched.push_back(place);
    }
    if (untouched.empty()) return outcomes;

    // What was not touched has been locked, or was there first: the newest snapshot tells what it is.
    std::vector<Datum> ids;
    for (const std::size_t place : untouched) ids.push_back(requests[place]->timer_id);
    const pg::Rows scheduled = select_scheduled.run_latest({array_of(ids, UUIDOID)});
    row = 0;
    for (const std::size_t place : untouched)
        if (row < scheduled.count() && same(scheduled.datum(row, 1), requests[place]->timer_id)) {
            outcomes[place] = Outcome::kept;
            row++;
        }
    return outcomes;
}

// What all timers of this session's last batch came to, if it was the same for all: may be so again.
std::optional<Outcome> expected = Outcome::inserted;

std::vector<Outcome> schedule_batch(const Batch& batch, RearmMode mode) {
    if ((expected == Outcome::inserted && insert_every(batch)) ||
        (expected == Outcome::rearmed && update_every(batch, mode)))
        return std::vector(batch.size(), *expected);
    std::vector<Outcome> outcomes = upsert_every(batch, mode);
    const bool same = std::count(outcomes.begin(), outcomes.end(), outcomes[0]) == std::ssize(outcomes);
    expected = same ? std::optional(outcomes[0]) : std::nullopt;
    return outcomes;
}

}  // namespace

std::vector<Outcome> schedule_many(std::span<const Request> requests, RearmMode mode) {
    if (requests.empty()) return {};
    const pg::OwnerRights rights(timer_table());
    const pg::Session session;
    const Batch batch(requests);
    const std::vector<Outcome> by_id = schedule_batch(batch, mode);
    std::vector<Outcome> outcomes;
    outcomes.reserve(requests.size());
    for (std::size_t i = 0; i < requests.size(); i++) outcomes.push_back(by_id[batch.place_of(i)]);
    return outcomes;
}

}  // namespace store

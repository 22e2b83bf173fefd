// SQL run from C++ through SPI: prepared once a session, with a plan that does not depend on how large the
// tables were when it was made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "pg/guard.hpp"

namespace pg {

// An SPI connection, for the statements that run while it lives. What they return lives no longer; use
// call_in() or copy to keep it.
class Session {
public:
    Session();
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    // The memory context of whoever opened the session.
    MemoryContext outside() const { return outside_; }

private:
    MemoryContext outside_;
    int exceptions_;
};

// A parameter of a statement.
struct Value {
    Datum datum;
    bool null = false;
};
inline constexpr Value null_value{0, true};

// The rows that a statement returned.
class Rows {
public:
    Rows(SPITupleTable* table, std::uint64_t count) : table_(table), count_(count) {}
    std::uint64_t count() const { return count_; }
    bool empty() const { return count_ == 0; }

    // Columns count from 1.
    Value value(std::uint64_t row, int column) const;
    Datum datum(std::uint64_t row, int column) const { return value(row, column).datum; }
    HeapTuple tuple(std::uint64_t row) const { return table_->vals[row]; }
    TupleDesc shape() const { return table_->tupdesc; }

private:
    SPITupleTable* table_;
    std::uint64_t count_;
};

// A statement's text and parameter types. Declared once, at namespace scope, as constinit; the plan is made on
// first use, kept for the session, and made again when the catalog changed under it. Planned with sequential
// and bitmap scans off: a plan that was made while a table was tiny must still be right when it is not. Every
// name in the text is schema-qualified, operators too: it runs under the caller's search_path.
class Statement {
public:
    static constexpr std::size_t most_parameters = 13;

    template <typename... Types>
    constexpr explicit Statement(const char* text, Types... types)
        : text_(text), types_{static_cast<Oid>(types)...}, count_(sizeof...(types)) {
        static_assert(sizeof...(types) <= most_parameters);
    }

    // Runs under a new snapshot (in READ COMMITTED) and returns its rows, or for a statement without any the
    // number of rows processed.
    Rows run(std::initializer_list<Value> values);

    // The same under the newest snapshot, whatever the isolation level of the transaction.
    Rows run_latest(std::initializer_list<Value> values);

    // The same under the snapshot of the query that called us, or the SharedSnapshot that is open, so that several
    // statements see one state. For reading.
    Rows run_as_of_caller(std::initializer_list<Value> values);

    // The same as run(), but raises lock_not_available where it would have to wait for long: sooner than the server
    // looks for a deadlock. Inside attempt().
    Rows run_or_give_up(std::initializer_list<Value> values);

private:
    enum class How { usual, latest, as_of_caller, impatient };
    Rows execute(std::initializer_list<Value> values, How how);
    void prepare();

    const char* text_;
    Oid types_[most_parameters];
    std::size_t count_;
    SPIPlanPtr plan_ = nullptr;
};

// A snapshot that several statements share, as new as the transaction's isolation level allows when it is opened.
class SharedSnapshot {
public:
    SharedSnapshot();
    ~SharedSnapshot();
    SharedSnapshot(const SharedSnapshot&) = delete;
    SharedSnapshot& operator=(const SharedSnapshot&) = delete;

private:
    int exceptions_;
};

// Switches to the rights of the owner of the extension's tables while it lives; an error ends it with the
// transaction. As foreign keys do, for the same reason: the caller needs rights on the function alone.
class OwnerRights {
public:
    explicit OwnerRights(Oid table);
    ~OwnerRights();
    OwnerRights(const OwnerRights&) = delete;
    OwnerRights& operator=(const OwnerRights&) = delete;

private:
    Oid role_ = InvalidOid;
    int context_ = 0;
};

}  // namespace pg

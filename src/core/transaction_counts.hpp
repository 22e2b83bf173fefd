// What one transaction has done, per lane, until it commits: what a savepoint did goes with it when it is rolled back.
// Savepoints are told apart by how deep they are nested; 1 is the transaction itself.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/lane_counts.hpp"

namespace core {

class TransactionCounts {
public:
    // What is done in `lane` at this depth; as good as new where nothing was counted yet.
    LaneCounts& of(std::string_view lane, int depth);

    // The savepoint of this depth has ended. Neither raises: they run in callbacks at its end.
    void keep(int depth) noexcept;
    void roll_back(int depth) noexcept;

    // Shows each lane with what was done in it, as often as there are depths left.
    template <typename Visit>
    void each(Visit&& visit) const {
        for (const Level& level : levels_)
            for (const auto& [lane, counts] : level.lanes) visit(lane, counts);
    }

    bool empty() const { return levels_.empty(); }
    void clear() noexcept;

private:
    using Lanes = std::map<std::string, LaneCounts, std::less<>>;
    struct Level {
        int depth;
        Lanes lanes;
    };

    std::vector<Level> levels_;    // the deepest last
    // What was counted last: many rows of a lane look nothing up.
    Lanes::value_type* last_ = nullptr;
};

}  // namespace core

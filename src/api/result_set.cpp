#include "api/result_set.hpp"

#include <vector>

namespace api {

ResultSet open_result_set(FunctionCallInfo call) {
    pg::call([=] { InitMaterializedSRF(call, 0); });
    const auto* info = reinterpret_cast<ReturnSetInfo*>(call->resultinfo);
    return {info->setResult, info->setDesc};
}

void put(const ResultSet& result, std::span<const pg::Value> row) {
    Datum values[MaxTupleAttributeNumber];
    bool nulls[MaxTupleAttributeNumber];
    for (std::size_t i = 0; i < row.size(); i++) {
        values[i] = row[i].datum;
        nulls[i] = row[i].null;
    }
    pg::call([&] { tuplestore_putvalues(result.rows, result.shape, values, nulls); });
}

void put_row(const ResultSet& result, const pg::Rows& rows, std::uint64_t row, int column) {
    std::vector<pg::Value> values;
    for (int i = 0; i < result.shape->natts; i++) values.push_back(rows.value(row, column + i));
    put(result, values);
}

}  // namespace api

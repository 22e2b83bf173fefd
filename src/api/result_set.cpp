#include "api/result_set.hpp"

namespace api {

ResultSet open_result_set(FunctionCallInfo call) {
    pg::call([=] { InitMaterializedSRF(call, 0); });
    const auto* info = reinterpret_cast<ReturnSetInfo*>(call->resultinfo);
    return {info->setResult, info->setDesc};
}

void put_row(const ResultSet& result, const pg::Rows& rows, std::uint64_t row, int column) {
    Datum values[MaxTupleAttributeNumber];
    bool nulls[MaxTupleAttributeNumber];
    for (int i = 0; i < result.shape->natts; i++) {
        const pg::Value value = rows.value(row, column + i);
        values[i] = value.datum;
        nulls[i] = value.null;
    }
    pg::call([&] { tuplestore_putvalues(result.rows, result.shape, values, nulls); });
}

}  // namespace api

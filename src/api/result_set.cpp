#include "api/result_set.hpp"

namespace api {

ResultSet open_result_set(FunctionCallInfo call) {
    pg::call([=] { InitMaterializedSRF(call, 0); });
    const auto* info = reinterpret_cast<ReturnSetInfo*>(call->resultinfo);
    return {info->setResult, info->setDesc};
}

}  // namespace api

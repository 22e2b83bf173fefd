#include "api/requests.hpp"

#include "pg/guard.hpp"

namespace api {

namespace {

constexpr int parts = 5;
constexpr const char* part_names[parts] = {"timer_id", "process_manager", "correlation_id", "fire_at", "payload"};

struct Elements {
    Datum* values;
    bool* nulls;
    int count;
    TupleDesc shape;
};

Elements elements_of(Datum datum) {
    return pg::call([=] {
        Elements elements;
        ArrayType* array = DatumGetArrayTypeP(datum);
        const Oid type = ARR_ELEMTYPE(array);
        int16 length;
        bool by_value;
        char alignment;
        get_typlenbyvalalign(type, &length, &by_value, &alignment);
        deconstruct_array(array, type, length, by_value, alignment, &elements.values, &elements.nulls, &elements.count);
        elements.shape = lookup_rowtype_tupdesc_copy(type, -1);
        return elements;
    });
}

[[noreturn]] void refuse_null(int place, int part) {
    const std::string detail = "Request " + std::to_string(place + 1) + " has one.";
    pg::raise(ERRCODE_NULL_VALUE_NOT_ALLOWED,
              std::string("argument \"requests\" must not have a null ") + part_names[part], detail.c_str());
}

}  // namespace

std::vector<store::Request> requests_of(Datum array) {
    const Elements elements = elements_of(array);
    if (elements.count > 0 && elements.shape->natts != parts)
        pg::raise(ERRCODE_DATATYPE_MISMATCH, "type timers.timer_request has been changed");

    std::vector<store::Request> requests;
    requests.reserve(static_cast<std::size_t>(elements.count));
    for (int place = 0; place < elements.count; place++) {
        if (elements.nulls[place]) refuse_null(place, 0);
        Datum values[parts];
        bool nulls[parts];
        pg::call([&] {
            HeapTupleHeader row = DatumGetHeapTupleHeader(elements.values[place]);
            HeapTupleData tuple{};
            tuple.t_len = HeapTupleHeaderGetDatumLength(row);
            tuple.t_data = row;
            heap_deform_tuple(&tuple, elements.shape, values, nulls);
        });
        for (int part = 0; part < parts; part++)
            if (nulls[part]) refuse_null(place, part);
        requests.push_back({values[0], values[1], values[2], values[3], values[4]});
    }
    return requests;
}

}  // namespace api

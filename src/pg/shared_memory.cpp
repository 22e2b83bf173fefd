#include "pg/shared_memory.hpp"

#include <cstring>

namespace pg {

namespace {

struct Request {
    const char* name;
    std::size_t size;
    std::size_t more;
    void (*initialize)(void*, LWLock*);
};
Request request{};

shmem_request_hook_type next_request_hook = nullptr;
shmem_startup_hook_type next_startup_hook = nullptr;

void on_request() {
    if (next_request_hook != nullptr) next_request_hook();
    RequestAddinShmemSpace(add_size(request.size, request.more));
    RequestNamedLWLockTranche(request.name, 1);
}

void on_startup() {
    if (next_startup_hook != nullptr) next_startup_hook();
    bool found = false;
    LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
    void* memory = ShmemInitStruct(request.name, request.size, &found);
    if (!found) std::memset(memory, 0, request.size);
    request.initialize(memory, &GetNamedLWLockTranche(request.name)->lock);
    LWLockRelease(AddinShmemInitLock);
}

}  // namespace

void request_shared_memory(const char* name, std::size_t size, std::size_t more,
                           void (*initialize)(void*, LWLock*)) {
    request = {name, size, more, initialize};
    next_request_hook = shmem_request_hook;
    shmem_request_hook = on_request;
    next_startup_hook = shmem_startup_hook;
    shmem_startup_hook = on_startup;
}

}  // namespace pg

// SPDX-License-Identifier: Apache-2.0
#include "communicator.h"

#include <c10/util/Exception.h>

namespace ring_torch
{

namespace
{

// One store serves several groups one after another (a second init_process_group under torchrun),
// so a fixed key would hand out the id of an earlier one: each group of `size` calls has its own.
std::string id_key(c10d::Store &store, int size)
{
    int64_t calls = store.add("ring/calls", 1) - 1;
    return "ring/id/" + std::to_string(calls / size);
}

ring_unique_id exchange_id(c10d::Store &store, const std::string &key, int rank,
                           std::chrono::milliseconds timeout)
{
    ring_unique_id id;
    if (rank == 0) {
        check(ring_get_unique_id(&id));
        store.set(key, std::vector<uint8_t>(id.bytes, id.bytes + sizeof id.bytes));
        return id;
    }
    store.wait({key}, timeout);
    std::vector<uint8_t> bytes = store.get(key);
    TORCH_CHECK(bytes.size() == sizeof id.bytes, "ring: the store holds an id of ", bytes.size(),
                " bytes in place of ", sizeof id.bytes,
                ": do all ranks have the same version of libring-torch?");
    std::copy(bytes.begin(), bytes.end(), id.bytes);
    return id;
}

} // namespace

void check(ring_status status)
{
    if (status == RING_OK)
        return;
    const char *text = ring_last_error(nullptr); // of this thread: rank, host, call and cause
    C10_THROW_ERROR(DistBackendError,
                    std::string(status == RING_ERR_TIMEOUT ? "ring: Timed out waiting: "
                                                           : "ring: ") +
                        (*text ? text : ring_status_string(status)));
}

std::shared_ptr<Communicator> Communicator::join(c10d::Store &store, int rank, int size,
                                                 std::chrono::milliseconds timeout)
{
    std::string key = id_key(store, size);
    ring_unique_id id = exchange_id(store, key, rank, timeout);
    std::string seconds = std::to_string(std::chrono::duration<double>(timeout).count());
    std::string patience = "RING_TIMEOUT=" + seconds, joining = "RING_INIT_TIMEOUT=" + seconds;
    const char *settings[] = {patience.c_str(), joining.c_str(), nullptr};
    ring_config config = RING_CONFIG_INIT;
    config.settings = settings;
    ring_comm *comm = nullptr;
    check(ring_comm_init_config(&comm, size, &id, rank, &config));
    if (rank == 0)
        store.deleteKey(key);
    return std::make_shared<Communicator>(comm);
}

ring_comm *Communicator::get() const
{
    if (!comm_)
        C10_THROW_ERROR(DistBackendError, "ring: the process group has been shut down");
    return comm_;
}

void Communicator::destroy()
{
    ring_comm_destroy(comm_);
    comm_ = nullptr;
}

} // namespace ring_torch

// SPDX-License-Identifier: Apache-2.0
// Python.h comes first, as it asks.
#include <Python.h>

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

ring_unique_id id_from(const std::vector<uint8_t> &bytes)
{
    ring_unique_id id;
    TORCH_CHECK(bytes.size() == sizeof id.bytes, "ring: the store holds an id of ", bytes.size(),
                " bytes in place of ", sizeof id.bytes,
                ": do all ranks have the same version of libring-torch?");
    std::copy(bytes.begin(), bytes.end(), id.bytes);
    return id;
}

/// What the store's own messages leave out: whose wait it was, and for what.
template <class Function>
auto named(const char *what, int rank, int size, std::chrono::milliseconds timeout, Function &&step)
{
    try {
        return step();
    } catch (const c10::Error &error) {
        C10_THROW_ERROR(DistBackendError,
                        c10::str("ring: init of rank ", rank, " of ", size, ": ", what, " in ",
                                 timeout.count(), " ms: ", error.what_without_backtrace()));
    }
}

ring_unique_id exchange_id(c10d::Store &store, const std::string &key, int rank, int size,
                           std::chrono::milliseconds timeout)
{
    if (rank > 0)
        return named("rank 0 has not put its address into the store", rank, size, timeout, [&] {
            store.wait({key}, timeout);
            return id_from(store.get(key));
        });
    ring_unique_id id;
    check(ring_get_unique_id(&id));
    named("its address did not go into the store", rank, size, timeout,
          [&] { store.set(key, std::vector<uint8_t>(id.bytes, id.bytes + sizeof id.bytes)); });
    return id;
}

/// While libring waits, other threads of Python run, if this one holds the interpreter's lock.
template <class Function> void without_interpreter(Function &&step)
{
    if (!Py_IsInitialized() || !PyGILState_Check()) {
        step();
        return;
    }
    PyThreadState *state = PyEval_SaveThread();
    step();
    PyEval_RestoreThread(state);
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
    const std::string key = named("the store does not answer", rank, size, timeout,
                                  [&] { return id_key(store, size); });
    const ring_unique_id id = exchange_id(store, key, rank, size, timeout);
    std::string seconds = std::to_string(std::chrono::duration<double>(timeout).count());
    std::string patience = "RING_TIMEOUT=" + seconds, joining = "RING_INIT_TIMEOUT=" + seconds;
    const char *settings[] = {patience.c_str(), joining.c_str(), nullptr};
    ring_config config = RING_CONFIG_INIT;
    config.settings = settings;
    config.quiet = 1; // check() throws
    ring_comm *comm = nullptr;
    check(ring_comm_init_config(&comm, size, &id, rank, &config));
    if (rank == 0)
        store.deleteKey(key);
    return std::make_shared<Communicator>(comm);
}

bool Communicator::begin_use(bool lasts)
{
    lasting_ += lasts;
    uses_++;
    if (!destroyed_)
        return true;
    end_use(lasts);
    return false;
}

void Communicator::end_use(bool lasts)
{
    lasting_ -= lasts;
    uses_--;
    if (destroyed_)
        uses_.notify_all();
}

Communicator::Use::Use(std::shared_ptr<Communicator> of) : of_(std::move(of))
{
    if (!of_->begin_use(true))
        C10_THROW_ERROR(DistBackendError, "ring: the process group has been shut down");
}

Communicator::Use::~Use()
{
    of_->end_use(true);
}

Communicator::HandleUse::HandleUse(Communicator &of, bool waits)
    : of_(of), waits_(waits), counted_(of.begin_use(waits))
{
    if (!counted_)
        of_.gone_.wait(false);
}

Communicator::HandleUse::~HandleUse()
{
    if (counted_)
        of_.end_use(waits_);
}

void Communicator::destroy()
{
    if (!owner_.is_this_process() || destroyed_.exchange(true))
        return;
    without_interpreter([this] {
        if (lasting_ > 0)
            ring_comm_abort(comm_, "the process group was shut down during the call");
        for (int uses; (uses = uses_) > 0;)
            uses_.wait(uses);
        ring_comm_destroy(comm_);
        gone_ = true;
        gone_.notify_all();
    });
    std::lock_guard lock(mutex_);
    kept_.clear();
}

void Communicator::keep(CallBuffers &&buffers)
{
    std::lock_guard lock(mutex_);
    if (!destroyed_)
        kept_.push_back(std::move(buffers));
}

} // namespace ring_torch

// SPDX-License-Identifier: Apache-2.0
// Defines the backend "ring" of torch.distributed. It maps each operation of c10d to the libring
// call that executes it, and has no collective logic of its own.
#ifndef RING_TORCH_BACKEND_H
#define RING_TORCH_BACKEND_H

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "call_buffers.h"
#include "communicator.h"
#include "memory.h"
#include "operation.h"

namespace ring_torch
{

using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// One operation of c10d before its start.
struct Request {
    c10d::OpType type;
    const char *title; // for profilers: "ring:all_reduce"
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    bool async = true;
    CallBuffers buffers = {}; // the tensors that the calls use
    Tensors inputs = {};      // for profilers
    Tensors result = {};      // the value of the future
};

/// Provides the options of each libring call of an operation. An asynchronous call gets a handle.
/// @param operation  null for a synchronous call.
class Starter
{
  public:
    Starter(const ring_call &options, Operation *operation)
        : options_(options), operation_(operation)
    {
    }
    /// Options of the next call, valid until next() is called again.
    const ring_call *next()
    {
        if (operation_)
            options_.work = operation_->add_handle();
        return &options_;
    }
    /// Options of a reduction.
    const ring_call *next(const Reduction &reduction)
    {
        options_.scale = reduction.scale ? &*reduction.scale : nullptr;
        return next();
    }
    /// Options of a message of an asynchronous operation.
    const ring_call *next(int tag, bool receives)
    {
        options_.tagged = 1;
        options_.tag = tag;
        options_.envelope = receives ? operation_->add_envelope() : nullptr;
        return next();
    }

  private:
    ring_call options_;
    Operation *operation_;
};

/// A function that makes the libring calls of a request, each with options of the Starter, and
/// returns their first error. It is stored if requests are coalesced, so it captures by value.
using Calls = std::function<ring_status(ring_comm *, Starter &)>;

/// Makes calls as one libring group: call(x) for each x of `all`, until one is refused.
template <class All, class Function> ring_status together(const All &all, Function &&call)
{
    ring_status status = ring_group_start();
    if (status != RING_OK)
        return status;
    for (auto each = all.begin(); each != all.end() && status == RING_OK; ++each)
        status = call(*each);
    const ring_status ended = ring_group_end();
    return status == RING_OK ? ended : status;
}

/// The requests of a thread between startCoalescing() and endCoalescing().
struct Coalesced {
    std::thread::id thread;
    std::vector<Request> requests;
    std::vector<Calls> calls;
};

class ProcessGroupRing : public c10d::Backend
{
  public:
    using BaseOptions = c10d::Backend::Options;
    struct Options : c10d::Backend::Options {
        explicit Options(std::chrono::milliseconds timeout)
            : c10d::Backend::Options("ring", timeout)
        {
        }
    };

    /// Joins the group. Blocks until all ranks have joined, for at most `timeout`, which also
    /// becomes the timeout of later calls.
    ProcessGroupRing(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                     std::chrono::milliseconds timeout);
    /// Makes a group from a communicator.
    ProcessGroupRing(std::shared_ptr<Communicator> communicator, int rank, int size,
                     std::chrono::milliseconds timeout);
    /// Aborts outstanding calls, and destroys the communicator.
    ~ProcessGroupRing() override;

    // The name and kind of the backend (backend.cpp).
    const std::string getBackendName() const override
    {
        return "ring";
    }
    bool supportsCoalescing() const override
    {
        return true;
    }
    void setSequenceNumberForGroup() override
    {
    }
    uint64_t getSequenceNumberForGroup() override
    {
        return sequence_;
    }
    c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override;
    void setTimeout(std::chrono::milliseconds timeout) override;

    // New groups (groups.cpp).
    bool supportsSplitting() const override
    {
        return true;
    }
    /// Called by all ranks. `ranks` lists the members in the order of their new ranks. Returns null
    /// on ranks that are not members.
    c10::intrusive_ptr<c10d::Backend>
    split(const c10::intrusive_ptr<c10d::Store> &store, const std::vector<int> &ranks,
          const c10::intrusive_ptr<BaseOptions> &options) override;
    /// Makes a group of `size` ranks, which may be members of different groups.
    c10::intrusive_ptr<c10d::Backend> merge(const c10::intrusive_ptr<c10d::Store> &store,
                                            const c10::intrusive_ptr<BaseOptions> &options,
                                            const int &rank, const int &size) override;
#if RING_TORCH_FROM(10)
    bool supportsShrinking() const override
    {
        return true;
    }
    /// Makes a group without the `excluded` ranks; called by the other ranks. After a failure, the
    /// survivors must be exactly these other ranks. A flag of 1 (SHRINK_ABORT) first aborts calls
    /// that are in progress.
    c10::intrusive_ptr<c10d::Backend>
    shrink(const std::vector<int64_t> &excluded, int flags,
           const c10::intrusive_ptr<BaseOptions> &options) override;
#endif

    // Memory of tensors (memory.h).
    bool supportsTensorAlloc(c10::DeviceIndex) override
    {
        return true;
    }
    at::Tensor allocateTensor(long numel, at::TensorOptions options = {}) override
    {
        return shared_tensor(numel, options);
    }

    // The end of the backend (backend.cpp).
    c10d::ErrorType getError() override;
    void abort() override;
    void shutdown() override;

    // Reductions (reductions.cpp, sparse.cpp).
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &options = {}) override;
    WorkPtr allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &options = {}) override;
    WorkPtr allreduce_coalesced(Tensors &tensors,
                                const c10d::AllreduceCoalescedOptions &options = {}) override;
    WorkPtr reduce(Tensors &tensors, const c10d::ReduceOptions &options = {}) override;
    WorkPtr reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                           const c10d::ReduceScatterOptions &options = {}) override;
    WorkPtr _reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                 const c10d::ReduceScatterOptions &options = {}) override;
    WorkPtr
    reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                    const c10d::ReduceScatterOptions &options = {}) override;

    // Operations that move elements (moves.cpp).
    WorkPtr broadcast(Tensors &tensors, const c10d::BroadcastOptions &options = {}) override;
    WorkPtr allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                      const c10d::AllgatherOptions &options = {}) override;
    WorkPtr _allgather_base(at::Tensor &output, at::Tensor &input,
                            const c10d::AllgatherOptions &options = {}) override;
    WorkPtr allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                const c10d::AllgatherOptions &options = {}) override;
    WorkPtr allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                            const c10d::AllgatherOptions &options = {}) override;
    WorkPtr gather(std::vector<Tensors> &outputs, Tensors &inputs,
                   const c10d::GatherOptions &options = {}) override;
    WorkPtr scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                    const c10d::ScatterOptions &options = {}) override;
    WorkPtr alltoall_base(at::Tensor &output, at::Tensor &input,
                          std::vector<int64_t> &output_splits, std::vector<int64_t> &input_splits,
                          const c10d::AllToAllOptions &options = {}) override;
    WorkPtr alltoall(Tensors &outputs, Tensors &inputs,
                     const c10d::AllToAllOptions &options = {}) override;

    // Messages, and coalesced calls (messages.cpp).
    WorkPtr send(Tensors &tensors, int peer, int tag) override;
    WorkPtr recv(Tensors &tensors, int peer, int tag) override;
    WorkPtr recvAnysource(Tensors &tensors, int tag) override;
    void startCoalescing() override;
    WorkPtr endCoalescing() override;

    // Barriers (backend.cpp, monitored_barrier.cpp).
    WorkPtr barrier(const c10d::BarrierOptions &options = {}) override;
    void monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks) override;

  private:
    c10::intrusive_ptr<c10d::Backend> of_some_ranks(ring_comm *comm,
                                                    std::chrono::milliseconds timeout);
    /// Starts the calls of a request, and counts the request if it is a collective. A synchronous
    /// request is complete when this returns null. A coalesced request is only stored, and
    /// endCoalescing() starts it; this also returns null.
    template <class Function> WorkPtr run(Request &&request, Function &&calls);
    /// Starts an asynchronous request.
    WorkPtr go_on(Request &&request, const std::function<ring_status(Starter &)> &calls);
    ring_call options_of(const Request &request) const;
    /// The timeout of a call or a new group; if it has none, that of this group.
    std::chrono::milliseconds timeout_or_own(std::chrono::milliseconds timeout) const;
    std::chrono::milliseconds timeout_of(const c10::intrusive_ptr<BaseOptions> &options) const;
    WorkPtr receive(Tensors &tensors, int peer, int tag, c10d::OpType type, const char *title);
    bool coalesces() const
    {
        return coalesced_ && coalesced_->thread == std::this_thread::get_id();
    }

    std::shared_ptr<Communicator> communicator_;
    std::atomic<std::chrono::milliseconds> timeout_;
    std::atomic<uint64_t> sequence_ = 0; // number of collectives so far
    std::unique_ptr<Coalesced> coalesced_;
};

/// Begins a profiler's range if a profiler is active. Returns the function that ends the range, or
/// an empty one.
std::function<void()> profiled(const char *title, const Tensors &inputs);

template <class Function> WorkPtr ProcessGroupRing::run(Request &&request, Function &&calls)
{
    const Communicator::Use comm(communicator_);
    if (!c10d::isP2POp(request.type))
        sequence_++;
    if (coalesces()) {
        coalesced_->requests.push_back(std::move(request));
        coalesced_->calls.push_back(std::forward<Function>(calls));
        return {};
    }
    if (request.async)
        return go_on(std::move(request), [&](Starter &starter) { return calls(comm, starter); });
    auto end_of_range = profiled(request.title, request.inputs);
    Starter starter(options_of(request), nullptr);
    const ring_status status = calls(comm, starter);
    if (end_of_range)
        end_of_range();
    if (status != RING_OK && ring_comm_status(comm) != RING_OK)
        communicator_->keep(std::move(request.buffers));
    check(status);
    request.buffers.finish();
    return {};
}

} // namespace ring_torch

#endif

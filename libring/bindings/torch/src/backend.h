// SPDX-License-Identifier: Apache-2.0
// The backend "ring" of torch.distributed: each of c10d's operations as the call of libring that
// does it. There is no collective logic here.
#ifndef RING_TORCH_BACKEND_H
#define RING_TORCH_BACKEND_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "call_buffers.h"
#include "communicator.h"
#include "operation.h"

namespace ring_torch
{

using Tensors = std::vector<at::Tensor>;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

/// One operation of c10d before its start.
struct Request {
    c10d::OpType type;
    const char *title; // for profilers: "ring:all_reduce"
    std::chrono::milliseconds timeout = c10d::kUnsetTimeout;
    bool async = true;
    CallBuffers buffers = {}; // what the calls use
    Tensors inputs = {};      // for profilers
    c10::IValue result = {};  // of the future
};

/// Gives each libring call of an operation its options; a call that is to go on gets a handle.
class Starter
{
  public:
    Starter(ring_call options, Operation *operation) : options_(options), operation_(operation)
    {
    }
    /// For the next call. Valid until the one after it.
    const ring_call *next()
    {
        if (operation_)
            options_.work = operation_->add_handle();
        return &options_;
    }
    /// The same for a reduction.
    const ring_call *next(const Reduction &reduction)
    {
        options_.scale = reduction.scale ? &*reduction.scale : nullptr;
        return next();
    }
    /// The same for a message.
    ring_call *next_tagged(int tag, ring_envelope *envelope)
    {
        options_.tagged = 1;
        options_.tag = tag;
        options_.envelope = envelope;
        next();
        return &options_;
    }

  private:
    ring_call options_;
    Operation *operation_;
};

class ProcessGroupRing : public c10d::Backend
{
  public:
    struct Options : c10d::Backend::Options {
        explicit Options(std::chrono::milliseconds timeout)
            : c10d::Backend::Options("ring", timeout)
        {
        }
    };

    /// Joins the group. Blocks until all ranks have, `timeout` at most, which is the time-out of
    /// later calls too.
    ProcessGroupRing(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                     std::chrono::milliseconds timeout);
    ~ProcessGroupRing() override;

    // What it is (backend.cpp).
    const std::string getBackendName() const override
    {
        return "ring";
    }
    c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override;
    bool supportsCoalescing() const override
    {
        return true;
    }
    void setTimeout(std::chrono::milliseconds timeout) override;
    void setSequenceNumberForGroup() override
    {
    }
    uint64_t getSequenceNumberForGroup() override
    {
        return sequence_;
    }

    // Its end (backend.cpp).
    c10d::ErrorType getError() override;
    void abort() override;
    void shutdown() override;

    // Reductions (reductions.cpp).
    WorkPtr allreduce(Tensors &tensors, const c10d::AllreduceOptions &options = {}) override;

    // Waiting for all (backend.cpp).
    WorkPtr barrier(const c10d::BarrierOptions &options = {}) override;

  private:
    ProcessGroupRing(std::shared_ptr<Communicator> communicator, int rank, int size,
                     std::chrono::milliseconds timeout);

    /// Starts the calls of a request: `calls` makes them, each with options of the Starter. It
    /// returns their first error. A request that is not async has ended when this returns, with
    /// null.
    template <class Calls> WorkPtr run(Request &&request, Calls &&calls);
    ring_call options_of(const Request &request) const;
    WorkPtr work_of(std::shared_ptr<Operation> operation, const Request &request);

    std::shared_ptr<Communicator> communicator_;
    std::chrono::milliseconds timeout_;
    uint64_t sequence_ = 0;
};

/// Marks a range for profilers until it is destroyed, if there are any.
std::function<void()> profiled(const char *title, const Tensors &inputs);

template <class Calls> WorkPtr ProcessGroupRing::run(Request &&request, Calls &&calls)
{
    ring_comm *comm = communicator_->get();
    ring_call options = options_of(request);
    auto end_of_range = profiled(request.title, request.inputs);
    if (!request.async) {
        ring_status status = calls(comm, Starter(options, nullptr));
        if (end_of_range)
            end_of_range();
        check(status);
        request.buffers.finish();
        return {};
    }
    auto operation = std::make_shared<Operation>(communicator_);
    operation->on_end = std::move(end_of_range);
    operation->buffers = std::move(request.buffers);
    operation->result = request.result;
    check(calls(comm, Starter(options, operation.get())));
    return work_of(std::move(operation), request);
}

} // namespace ring_torch

#endif

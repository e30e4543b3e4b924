// SPDX-License-Identifier: Apache-2.0
// Implements the life of a process group, the start of asynchronous calls, and barriers.
#include "backend.h"

#include <ATen/record_function.h>

#include "async_work.h"
#include "completer.h"

namespace ring_torch
{

ProcessGroupRing::ProcessGroupRing(const c10::intrusive_ptr<c10d::Store> &store, int rank, int size,
                                   std::chrono::milliseconds timeout)
    : ProcessGroupRing(Communicator::join(*store, rank, size, timeout), rank, size, timeout)
{
}

ProcessGroupRing::ProcessGroupRing(std::shared_ptr<Communicator> communicator, int rank, int size,
                                   std::chrono::milliseconds timeout)
    : Backend(rank, size), communicator_(std::move(communicator)), timeout_(timeout)
{
    init();
}

// Destroys the communicator explicitly, because operations in flight hold references to it.
ProcessGroupRing::~ProcessGroupRing()
{
    communicator_->destroy();
}

c10::intrusive_ptr<c10d::Backend::Options> ProcessGroupRing::getBackendOptions()
{
    return c10::make_intrusive<Options>(timeout_.load());
}

void ProcessGroupRing::setTimeout(std::chrono::milliseconds timeout)
{
    timeout_ = timeout;
}

c10d::ErrorType ProcessGroupRing::getError()
{
    if (communicator_->is_destroyed())
        return c10d::ErrorType::SUCCESS;
    switch (ring_comm_status(Communicator::Use(communicator_))) {
    case RING_OK:
        return c10d::ErrorType::SUCCESS;
    case RING_ERR_TIMEOUT:
        return c10d::ErrorType::TIMEOUT;
    case RING_ERR_PEER:
        return c10d::ErrorType::REMOTE_ERROR;
    default:
        return c10d::ErrorType::COMM_ERROR;
    }
}

void ProcessGroupRing::abort()
{
    if (!communicator_->is_destroyed())
        ring_comm_abort(Communicator::Use(communicator_),
                        "torch.distributed aborted the process group");
}

void ProcessGroupRing::shutdown()
{
    communicator_->destroy();
}

std::chrono::milliseconds ProcessGroupRing::timeout_or_own(std::chrono::milliseconds timeout) const
{
    return timeout == c10d::kUnsetTimeout ? timeout_.load() : timeout;
}

std::chrono::milliseconds
ProcessGroupRing::timeout_of(const c10::intrusive_ptr<BaseOptions> &options) const
{
    return options ? options->timeout : timeout_.load();
}

ring_call ProcessGroupRing::options_of(const Request &request) const
{
    ring_call options = RING_CALL_INIT;
    options.timeout = std::chrono::duration<double>(timeout_or_own(request.timeout)).count();
    if (request.async)
        options.on_done = call_has_ended;
    return options;
}

WorkPtr ProcessGroupRing::go_on(Request &&request,
                                const std::function<ring_status(Starter &)> &calls)
{
    auto operation = std::make_shared<Operation>(communicator_, request.title, rank_, size_);
    operation->on_end = profiled(request.title, request.inputs);
    operation->buffers = std::move(request.buffers);
    operation->result = std::move(request.result);
    Starter starter(options_of(request), operation.get());
    // If one of several calls is refused, the others may be in flight. The Work then keeps their
    // tensors.
    auto work = c10::make_intrusive<AsyncWork>(operation, rank_, request.type, sequence_);
    const ring_status status = calls(starter);
    try {
        check(status);
    } catch (...) {
        operation->refuse(std::current_exception());
        throw;
    }
    return work;
}

WorkPtr ProcessGroupRing::barrier(const c10d::BarrierOptions &options)
{
    Request request{c10d::OpType::BARRIER, "ring:barrier", options.timeout, options.asyncOp};
    return run(std::move(request), [](ring_comm *comm, Starter &starter) {
        return ring_barrier(comm, starter.next());
    });
}

std::function<void()> profiled(const char *title, const Tensors &inputs)
{
    if (!at::hasCallbacks())
        return {};
    auto range = std::make_shared<at::RecordFunction>(at::RecordScope::USER_SCOPE);
    if (!range->isActive())
        return {};
    range->_setAsync();
    std::vector<c10::IValue> values(inputs.begin(), inputs.end());
    range->before(title, c10::ArrayRef<const c10::IValue>(values.data(), values.size()));
    return [range] { range->end(); };
}

} // namespace ring_torch

// SPDX-License-Identifier: Apache-2.0
// Implements the Work of c10d: waits for its operation, and reports the result.
#include "async_work.h"

#include <c10/util/Exception.h>

#include "completer.h"

namespace ring_torch
{

namespace
{

constexpr double for_ever = 1e9; // seconds; the call's own timeout ends it earlier

} // namespace

AsyncWork::~AsyncWork()
{
    if (operation_->is_of_this_process() && !operation_->has_ended())
        complete_later(std::move(operation_));
}

bool AsyncWork::isCompleted()
{
    operation_->require_this_process();
    return operation_->has_ended();
}

int AsyncWork::sourceRank() const
{
    TORCH_CHECK(opType_ == c10d::OpType::RECV || opType_ == c10d::OpType::RECVANYSOURCE,
                "ring: only the Work of a receive has a source rank");
    return operation_->source();
}

std::vector<at::Tensor> AsyncWork::result()
{
    TORCH_CHECK(isCompleted(),
                "ring: this Work is still in progress and has no result; call wait() first");
    return operation_->result;
}

bool AsyncWork::wait(std::chrono::milliseconds timeout)
{
    double seconds = timeout.count() > 0 ? std::chrono::duration<double>(timeout).count()
                                         : for_ever;
    if (!operation_->wait(seconds))
        C10_THROW_ERROR(DistBackendError,
                        c10::str("ring: ", operation_->name(), ": Timed out waiting ",
                                 timeout.count(), " ms for the call, which is still in progress"));
    if (auto exception = operation_->exception())
        std::rethrow_exception(exception);
    return true;
}

void AsyncWork::abort()
{
    TORCH_CHECK(false, "ring: cannot abort a single call; use the process group's abort()");
}

c10::intrusive_ptr<c10::ivalue::Future> AsyncWork::getFuture()
{
    auto future = operation_->future();
    if (!future->completed() && !complete_later(operation_))
        operation_->wait(for_ever);
    return future;
}

} // namespace ring_torch

// SPDX-License-Identifier: Apache-2.0
#include "operation.h"

#include <chrono>

namespace ring_torch
{

namespace
{

using Clock = std::chrono::steady_clock;

double left(Clock::time_point start, double seconds)
{
    return std::max(0.0, seconds - std::chrono::duration<double>(Clock::now() - start).count());
}

} // namespace

// Nobody waits any more: handles of calls that ended are freed. One that has not (a group that was
// refused in part) is left to the communicator, which ends it.
Operation::~Operation()
{
    for (ring_work *&handle : handles_)
        if (handle)
            ring_wait_for(&handle, 0);
}

bool Operation::wait(double seconds)
{
    {
        std::unique_lock lock(mutex_);
        if (state_ == ended)
            return true;
    }
    auto start = Clock::now();
    ring_status first = RING_OK;
    for (ring_work *handle : handles_) {
        ring_status status = ring_wait_keep(handle, left(start, seconds));
        if (status == RING_IN_PROGRESS)
            return false;
        if (first == RING_OK)
            first = status;
    }
    end(first);
    return true;
}

// The first thread that saw the end does what follows; the others wait until that is done.
void Operation::end(ring_status status)
{
    {
        std::unique_lock lock(mutex_);
        if (state_ != under_way) {
            ended_.wait(lock, [this] { return state_ == ended; });
            return;
        }
        state_ = ending;
    }
    std::exception_ptr exception;
    try {
        check(status);
        buffers.finish();
    } catch (...) {
        exception = std::current_exception();
    }
    if (on_end)
        on_end();
    c10::intrusive_ptr<c10::ivalue::Future> future;
    {
        std::unique_lock lock(mutex_);
        exception_ = exception;
        state_ = ended;
        future = future_;
        ended_.notify_all();
    }
    if (!future)
        return;
    if (exception)
        future->setError(exception);
    else
        future->markCompleted(result);
}

std::exception_ptr Operation::exception() const
{
    std::unique_lock lock(mutex_);
    return exception_;
}

c10::intrusive_ptr<c10::ivalue::Future> Operation::future()
{
    std::unique_lock lock(mutex_);
    if (future_)
        return future_;
    future_ = c10::make_intrusive<c10::ivalue::Future>(result.type());
    if (state_ != ended)
        return future_;
    if (exception_)
        future_->setError(exception_);
    else
        future_->markCompleted(result);
    return future_;
}

} // namespace ring_torch

// SPDX-License-Identifier: Apache-2.0
// Waits for the calls of an operation, and completes the operation in one of the waiting threads.
#include "operation.h"

#include <algorithm>
#include <chrono>

#include <c10/util/Exception.h>

namespace ring_torch
{

namespace
{

using Clock = std::chrono::steady_clock;

constexpr double moment = 0.02; // seconds; a shorter wait counts as a poll

// Returns how many of the `seconds` since `start` are left.
double left(Clock::time_point start, double seconds)
{
    return std::max(0.0, seconds - std::chrono::duration<double>(Clock::now() - start).count());
}

} // namespace

// Frees the handles of calls that have ended; no thread waits for them any more. A call that has
// not ended belongs to a group of which another call was refused; it ends with the communicator.
Operation::~Operation()
{
    if (!is_of_this_process())
        return;
    const Communicator::HandleUse use(*communicator_, false);
    for (ring_work *&handle : handles_)
        if (handle)
            ring_wait_for(&handle, 0);
}

// Waits for all calls. Returns RING_OK or their first error; RING_IN_PROGRESS if they have not all
// ended; RING_ERR_USAGE if waiting is impossible.
ring_status Operation::calls_ended(double seconds)
{
    const Communicator::HandleUse use(*communicator_, seconds > moment);
    const auto start = Clock::now();
    ring_status first = RING_OK;
    for (ring_work *handle : handles_) {
        const ring_status status = ring_wait_keep(handle, left(start, seconds));
        if (status == RING_IN_PROGRESS || status == RING_ERR_USAGE)
            return status;
        if (first == RING_OK)
            first = status;
    }
    return first;
}

std::string Operation::name() const
{
    return c10::str("rank ", rank_, " of ", ranks_, ": ", title_);
}

void Operation::require_this_process() const
{
    if (!is_of_this_process())
        C10_THROW_ERROR(DistBackendError,
                        "ring: " + name() +
                            ": this call was made by the parent process; a forked child cannot use "
                            "it");
}

bool Operation::wait(double seconds)
{
    require_this_process();
    {
        std::unique_lock lock(mutex_);
        if (state_ == ended)
            return true;
    }
    const ring_status status = calls_ended(seconds);
    if (status == RING_IN_PROGRESS)
        return false;
    if (status == RING_ERR_USAGE)
        check(status);
    if (claim_end(true))
        end(status);
    return true;
}

bool Operation::has_ended()
{
    {
        std::unique_lock lock(mutex_);
        if (state_ != under_way)
            return state_ == ended;
    }
    const ring_status status = calls_ended(0);
    if (status == RING_IN_PROGRESS || status == RING_ERR_USAGE || !claim_end(false))
        return false;
    end(status);
    return true;
}

// Returns true for the first thread that finds that the calls have ended, which must then complete
// the operation. Other threads wait for that thread if `others_wait`.
bool Operation::claim_end(bool others_wait)
{
    std::unique_lock lock(mutex_);
    if (state_ == under_way) {
        state_ = ending;
        return true;
    }
    if (others_wait)
        ended_.wait(lock, [this] { return state_ == ended; });
    return false;
}

void Operation::end(ring_status status)
{
    std::exception_ptr exception = refusal_;
    try {
        if (!exception) {
            check(status);
            if (buffers.has_steps()) {
                const at::ThreadLocalStateGuard as_the_caller(callers_);
                buffers.finish();
            }
        }
    } catch (...) {
        exception = std::current_exception();
    }
    if (status != RING_OK)
        communicator_->keep(std::move(buffers));
    if (on_end) {
        const at::ThreadLocalStateGuard as_the_caller(callers_);
        on_end();
    }
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
    const at::ThreadLocalStateGuard as_the_caller(callers_);
    if (exception)
        future->setError(exception);
    else
        future->markCompleted(result);
}

std::exception_ptr Operation::exception() const
{
    require_this_process();
    std::unique_lock lock(mutex_);
    return exception_;
}

c10::intrusive_ptr<c10::ivalue::Future> Operation::future()
{
    require_this_process();
    std::unique_lock lock(mutex_);
    if (future_)
        return future_;
    future_ = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::ofTensors());
    if (state_ != ended)
        return future_;
    if (exception_)
        future_->setError(exception_);
    else
        future_->markCompleted(result);
    return future_;
}

} // namespace ring_torch

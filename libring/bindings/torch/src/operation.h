// SPDX-License-Identifier: Apache-2.0
// Defines an operation, an asynchronous call of c10d: the handles of its libring calls, their
// tensors, and a future. The first thread that finds that the calls have ended completes the
// operation, with the thread-local state of the caller: inference mode, grad mode, and so on.
#ifndef RING_TORCH_OPERATION_H
#define RING_TORCH_OPERATION_H

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include <ATen/ThreadLocalState.h>
#include <ATen/core/ivalue.h>

#include "call_buffers.h"
#include "communicator.h"

namespace ring_torch
{

class Operation
{
  public:
    /// @param title  the call's name for profilers and messages, a static string.
    Operation(std::shared_ptr<Communicator> communicator, const char *title, int rank, int ranks)
        : communicator_(std::move(communicator)), title_(title), rank_(rank), ranks_(ranks)
    {
    }
    ~Operation();

    CallBuffers buffers;
    Tensors result; // the value of the future
    /// Called once when the operation has ended; ends a profiler's range.
    std::function<void()> on_end;

    /// For messages: "rank 1 of 2: ring:all_reduce".
    std::string name() const;

    /// Returns a place for the handle of the next libring call. Its address does not change.
    ring_work **add_handle()
    {
        return &handles_.emplace_back(nullptr);
    }

    /// Returns a place for the sender and the tag of the next receive.
    ring_envelope *add_envelope()
    {
        return &envelopes_.emplace_back(ring_envelope{-1, -1});
    }
    /// Returns the sender of the first receive; -1 until it has ended.
    int source() const
    {
        return envelopes_.empty() ? -1 : envelopes_.front().source;
    }

    /// Waits at most `seconds`. Several threads may wait. Returns false if the calls are still in
    /// progress. Throws a DistBackendError if waiting is impossible: in a forked child, and in an
    /// open group of libring.
    bool wait(double seconds);
    /// Returns true if the operation is complete, and completes it if its calls have ended. Returns
    /// false while another thread completes it. Blocks only while another thread destroys the
    /// communicator.
    bool has_ended();
    /// Records that a call was refused, so that nothing is copied back. Must be called before the
    /// first wait.
    void refuse(std::exception_ptr why)
    {
        refusal_ = why;
    }
    /// Returns false in a forked child, which does not have the calls.
    bool is_of_this_process() const
    {
        return owner_.is_this_process();
    }
    /// Null while the operation is in flight and after success.
    std::exception_ptr exception() const;
    /// Returns the future. It is completed only if a thread waits for the operation; see
    /// complete_later().
    c10::intrusive_ptr<c10::ivalue::Future> future();

    /// Throws a DistBackendError in a forked child.
    void require_this_process() const;

  private:
    ring_status calls_ended(double seconds);
    bool claim_end(bool others_wait);
    void end(ring_status status);

    std::shared_ptr<Communicator> communicator_;
    const char *const title_;
    const int rank_, ranks_;
    const at::ThreadLocalState callers_; // thread-local state of the thread that made the call
    std::deque<ring_work *> handles_;
    std::deque<ring_envelope> envelopes_;
    const Owner owner_;
    std::exception_ptr refusal_;
    mutable std::mutex mutex_;
    std::condition_variable ended_;
    enum { under_way, ending, ended } state_ = under_way;
    std::exception_ptr exception_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace ring_torch

#endif

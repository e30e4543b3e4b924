// SPDX-License-Identifier: Apache-2.0
// Holds the parts of an asynchronous call of c10d: the handles of its libring calls, their tensors,
// and the future that is completed when they have ended. The thread that sees the end completes the
// operation in the state of the caller's thread: inference mode, grad mode, and so on.
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
    /// @param title  of the call, static.
    Operation(std::shared_ptr<Communicator> communicator, const char *title, int rank, int ranks)
        : communicator_(std::move(communicator)), title_(title), rank_(rank), ranks_(ranks)
    {
    }
    ~Operation();

    CallBuffers buffers;
    Tensors result; // of the future
    /// Called once when the operation has ended (the end of a profiler's range).
    std::function<void()> on_end;

    /// For messages: "rank 1 of 2: ring:all_reduce".
    std::string name() const;

    /// Returns a place for the handle of one more libring call; its address does not change.
    ring_work **add_handle()
    {
        return &handles_.emplace_back(nullptr);
    }

    /// Returns a place for the sender and the tag of one more receive.
    ring_envelope *add_envelope()
    {
        return &envelopes_.emplace_back(ring_envelope{-1, -1});
    }
    /// The sender of the first receive; -1 before its end.
    int source() const
    {
        return envelopes_.empty() ? -1 : envelopes_.front().source;
    }

    /// Waits at most `seconds`, in any number of threads. False: the calls continue. Throws a
    /// DistBackendError if waiting is impossible: in a forked child, and in an open group of
    /// libring.
    bool wait(double seconds);
    /// Blocks only while another thread destroys the communicator. Also false while another thread
    /// completes the operation.
    bool has_ended();
    /// Called before the first wait if a call was refused, so that nothing is copied back.
    void refuse(std::exception_ptr why)
    {
        refusal_ = why;
    }
    /// False in a forked child, which does not have the calls.
    bool is_of_this_process() const
    {
        return owner_.is_this_process();
    }
    /// Null while the operation is in flight and after success.
    std::exception_ptr exception() const;
    /// The future, which is completed only if a thread waits for the operation: see Completer.
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
    const at::ThreadLocalState callers_;
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

// SPDX-License-Identifier: Apache-2.0
// Defines the owner of a libring communicator, which the backend and the operations in flight
// share. It destroys the communicator only while no thread uses it.
#ifndef RING_TORCH_COMMUNICATOR_H
#define RING_TORCH_COMMUNICATOR_H

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "call_buffers.h"
#include "forks.h"
#include "ring/ring.h"

namespace ring_torch
{

class Communicator
{
  public:
    /// Joins as `rank` of `size`. Rank 0 passes the communicator's id to the other ranks through
    /// the store. Blocks until all ranks have joined, for at most `timeout`.
    static std::shared_ptr<Communicator> join(c10d::Store &store, int rank, int size,
                                              std::chrono::milliseconds timeout);
    /// Takes ownership of `comm`.
    explicit Communicator(ring_comm *comm) : comm_(comm)
    {
    }
    ~Communicator()
    {
        destroy();
    }
    Communicator(const Communicator &) = delete;
    Communicator &operator=(const Communicator &) = delete;

    /// Gives access to the communicator while a call is made: destroy() in another thread waits
    /// until the Use ends.
    class Use
    {
      public:
        /// Throws a DistBackendError after destroy().
        explicit Use(std::shared_ptr<Communicator> of);
        ~Use();
        Use(const Use &) = delete;
        Use &operator=(const Use &) = delete;
        operator ring_comm *() const
        {
            return of_->comm_;
        }

      private:
        std::shared_ptr<Communicator> of_;
    };

    /// Must exist while a thread waits for or checks handles of calls. Handles remain valid after
    /// the communicator has been destroyed, but not during that. So destroy() waits until each
    /// HandleUse ends, and a HandleUse that begins during destroy() blocks until it is complete.
    class HandleUse
    {
      public:
        /// @param waits  the use may last until the calls end, so destroy() aborts them. False: the
        ///               use is short.
        HandleUse(Communicator &of, bool waits);
        ~HandleUse();
        HandleUse(const HandleUse &) = delete;
        HandleUse &operator=(const HandleUse &) = delete;

      private:
        Communicator &of_;
        const bool waits_, counted_;
    };

    bool is_destroyed() const
    {
        return destroyed_;
    }
    /// Aborts outstanding calls and destroys the communicator. Other Python threads can run
    /// meanwhile. May be called again, by any thread. Does nothing in a forked child.
    void destroy();
    /// Keeps the buffers of a failed call until destroy(), because peers may still write to them.
    void keep(CallBuffers &&buffers);

  private:
    /// Returns false if destroy() has begun. @param lasts  the use ends only when the call has
    /// ended or is aborted
    bool begin_use(bool lasts);
    void end_use(bool lasts);

    ring_comm *const comm_;
    const Owner owner_;
    std::atomic<int> uses_{0};           // number of uses
    std::atomic<int> lasting_{0};        // how many of them last until their call has ended
    std::atomic<bool> destroyed_{false}; // destroy() has begun
    std::atomic<bool> gone_{false};      // destroy() has ended
    std::mutex mutex_;
    std::vector<CallBuffers> kept_;
};

/// Throws a DistBackendError with this thread's ring_last_error() unless `status` is RING_OK.
void check(ring_status status);

} // namespace ring_torch

#endif

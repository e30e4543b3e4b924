// SPDX-License-Identifier: Apache-2.0
// Owns a communicator of libring, which the backend and the operations in flight share.
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
    /// Joins as `rank` of `size`; the id of the communicator goes from rank 0 to the others through
    /// the store. Blocks until all have joined, `timeout` at most.
    static std::shared_ptr<Communicator> join(c10d::Store &store, int rank, int size,
                                              std::chrono::milliseconds timeout);
    /// Takes over `comm`.
    explicit Communicator(ring_comm *comm) : comm_(comm)
    {
    }
    ~Communicator()
    {
        destroy();
    }
    Communicator(const Communicator &) = delete;
    Communicator &operator=(const Communicator &) = delete;

    /// The communicator while a call is made on it: destroy() in another thread waits for its end.
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

    /// The communicator while its handles, which outlive it, are waited for or looked at: destroy()
    /// waits for the end of one that has begun, and one that begins during destroy() blocks until
    /// the communicator is gone.
    class HandleUse
    {
      public:
        /// @param waits  the use may last, until destroy() aborts the calls; otherwise it is short
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
    /// Aborts outstanding calls and destroys the communicator. Python's other threads can run
    /// meanwhile. May be called again, by any thread; in a forked child it does nothing.
    void destroy();
    /// Keeps the buffers of a failed call until destroy(), because peers may still write to them.
    void keep(CallBuffers &&buffers);

  private:
    /// False once destroy() has begun. @param lasts  until the call has ended or is aborted
    bool begin_use(bool lasts);
    void end_use(bool lasts);

    ring_comm *const comm_;
    const Owner owner_;
    std::atomic<int> uses_{0};
    std::atomic<int> lasting_{0};        // of the uses
    std::atomic<bool> destroyed_{false}; // destroy() has begun
    std::atomic<bool> gone_{false};      // and has ended
    std::mutex mutex_;
    std::vector<CallBuffers> kept_;
};

/// Throws a DistBackendError with the text of this thread's latest failure unless `status` is
/// RING_OK.
void check(ring_status status);

} // namespace ring_torch

#endif

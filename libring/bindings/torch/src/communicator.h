// SPDX-License-Identifier: Apache-2.0
// A communicator of libring, shared by the backend and the operations that are under way on it.
#ifndef RING_TORCH_COMMUNICATOR_H
#define RING_TORCH_COMMUNICATOR_H

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/Store.hpp>

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

    /// Throws a DistBackendError after destroy().
    ring_comm *get() const;
    /// For the orderly end: outstanding calls are aborted. May be called again.
    void destroy();

  private:
    ring_comm *comm_;
};

/// Throws a DistBackendError with the text of this thread's latest failure unless `status` is
/// RING_OK.
void check(ring_status status);

} // namespace ring_torch

#endif

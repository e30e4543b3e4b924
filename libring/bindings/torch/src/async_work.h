// SPDX-License-Identifier: Apache-2.0
// Implements the Work that c10d returns to its users, as a view of an operation.
#ifndef RING_TORCH_ASYNC_WORK_H
#define RING_TORCH_ASYNC_WORK_H

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "operation.h"

namespace ring_torch
{

class AsyncWork : public c10d::Work
{
  public:
    AsyncWork(std::shared_ptr<Operation> operation, int rank, c10d::OpType type, uint64_t sequence)
        : Work(rank, type), operation_(std::move(operation)), sequence_(sequence)
    {
    }
    /// An operation that is still in flight continues, keeps its tensors, and need not be waited
    /// for.
    ~AsyncWork() override;

    bool isCompleted() override;
    bool isSuccess() const override
    {
        return !operation_->exception();
    }
    /// Null while the operation is in flight and after success.
    std::exception_ptr exception() const override
    {
        return operation_->exception();
    }
    int sourceRank() const override;
    std::vector<at::Tensor> result() override;
    /// Throws the error that ended the operation, or a DistBackendError after `timeout`; then the
    /// operation continues. 0: until the time-out of the call.
    bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
    void synchronize() override
    {
        wait();
    }
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    uint64_t getSequencenumber() const override
    {
        return sequence_;
    }

  private:
    std::shared_ptr<Operation> operation_;
    uint64_t sequence_;
};

} // namespace ring_torch

#endif

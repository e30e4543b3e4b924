// SPDX-License-Identifier: Apache-2.0
// The Work that c10d gives to its users: a view of an operation.
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
    /// An operation that is still under way goes on, with its tensors, and nobody need wait for it.
    ~AsyncWork() override;

    bool isCompleted() override;
    bool isSuccess() const override
    {
        return !operation_->exception();
    }
    /// Null while under way and after success.
    std::exception_ptr exception() const override
    {
        return operation_->exception();
    }
    int sourceRank() const override;
    std::vector<at::Tensor> result() override;
    /// Throws what ended the operation, or a DistBackendError when `timeout` is over: the operation
    /// goes on then. 0: until the time-out of the call.
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

// SPDX-License-Identifier: Apache-2.0
// Defines the Work that c10d returns to users for an asynchronous call. It refers to an operation,
// which may outlive it.
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
    /// If the operation is still in flight, it continues and keeps its tensors. The user need not
    /// wait for it.
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
    /// Throws the error with which the operation has ended. After `timeout`, throws a
    /// DistBackendError, and the operation continues. 0: waits until the call's own timeout.
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

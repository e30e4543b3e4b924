// SPDX-License-Identifier: Apache-2.0
// Provides the memory of tensors to the calls of libring, and copies results back to tensors that
// libring cannot write in place after the call has ended.
#ifndef RING_TORCH_CALL_BUFFERS_H
#define RING_TORCH_CALL_BUFFERS_H

#include <functional>
#include <vector>

#include <ATen/ATen.h>

#include "types.h"

namespace ring_torch
{

using Tensors = std::vector<at::Tensor>;

/// Throws for tensors that are not supported: those on other devices, and sparse ones. Must be
/// called before anything is sent.
void check_tensor(const at::Tensor &tensor, const char *call);

/// Returns the only tensor of a list after check_tensor(). Throws if the list has another length.
/// @param which  for messages: "input tensor".
const at::Tensor &only_tensor(const Tensors &tensors, const char *call,
                              const char *which = "tensor");

/// Throws if the tensors have different types.
void check_same_type(const at::Tensor &a, const at::Tensor &b, const char *call);

/// Keeps the tensors of one call of c10d until the call has ended. libring needs the elements in
/// the order of their indices, because ranks may store the same tensor with different strides. A
/// tensor that is stored differently gets a copy in that order, and finish() writes results back.
class CallBuffers
{
  public:
    /// Returns memory that contains the elements of `tensor`. Not null, even if there are none.
    const void *input(const at::Tensor &tensor);
    /// Returns memory for the elements of `tensor`, with undefined contents.
    void *output(const at::Tensor &tensor);
    /// Returns memory that contains the elements of `tensor`, and that the call may change.
    void *in_place(const at::Tensor &tensor);
    /// Adds a step that finish() executes. Steps are executed in the order in which they are added.
    void afterwards(std::function<void()> step)
    {
        steps_.push_back(std::move(step));
    }
    bool has_steps() const
    {
        return !steps_.empty();
    }
    /// Executes the steps, once. Must be called after the call has succeeded.
    void finish();
    /// Appends the tensors and steps of `other`.
    void add(CallBuffers &&other);

  private:
    std::vector<at::Tensor> kept_;
    std::vector<std::function<void()>> steps_;
};

/// A list of tensors as arguments for a libring call that takes lists: the address and the number
/// of elements of each tensor.
struct Blocks {
    std::vector<void *> addresses;
    std::vector<size_t> counts;
};

/// Throw if the tensors of the list have different types.
Blocks input_blocks(CallBuffers &buffers, const Tensors &tensors, const char *call);
Blocks output_blocks(CallBuffers &buffers, const Tensors &tensors, const char *call);

} // namespace ring_torch

#endif

// SPDX-License-Identifier: Apache-2.0
// Presents tensors as memory that a call of libring reads and writes, and copies results back after
// the call has ended.
#ifndef RING_TORCH_CALL_BUFFERS_H
#define RING_TORCH_CALL_BUFFERS_H

#include <functional>
#include <vector>

#include <ATen/ATen.h>

#include "types.h"

namespace ring_torch
{

using Tensors = std::vector<at::Tensor>;

/// Refuses unsupported tensors before anything is sent: those on other devices, and sparse ones.
void check_tensor(const at::Tensor &tensor, const char *call);

/// Returns the only tensor of a list, checked. A list of another length is refused.
/// @param which  for messages: "input tensor".
const at::Tensor &only_tensor(const Tensors &tensors, const char *call,
                              const char *which = "tensor");

/// Refuses tensors of different types.
void check_same_type(const at::Tensor &a, const at::Tensor &b, const char *call);

/// The tensors that one call of c10d uses: keeps them until the call has ended, with copies of
/// those whose memory does not hold their values in the order of their indices, which are written
/// back by finish(). Ranks may store the same tensor differently.
class CallBuffers
{
  public:
    /// Memory with the elements of `tensor`, to be read. [numel] elements; not null, also if empty.
    const void *input(const at::Tensor &tensor);
    /// Memory whose elements become those of `tensor`. Nothing is copied into it.
    void *output(const at::Tensor &tensor);
    /// Memory that is read and written.
    void *in_place(const at::Tensor &tensor);
    /// Adds a step that finish() runs once after the call has succeeded, in the order of addition.
    void afterwards(std::function<void()> step)
    {
        steps_.push_back(std::move(step));
    }
    bool has_steps() const
    {
        return !steps_.empty();
    }
    void finish();
    /// Appends the tensors and steps of `other`.
    void add(CallBuffers &&other);

  private:
    std::vector<at::Tensor> kept_;
    std::vector<std::function<void()>> steps_;
};

/// One list of tensors as the blocks of a list call of libring: an address and a number of elements
/// each.
struct Blocks {
    std::vector<void *> addresses;
    std::vector<size_t> counts;
};

/// All tensors of a list have one type.
Blocks input_blocks(CallBuffers &buffers, const Tensors &tensors, const char *call);
Blocks output_blocks(CallBuffers &buffers, const Tensors &tensors, const char *call);

} // namespace ring_torch

#endif

// SPDX-License-Identifier: Apache-2.0
// Tensors in the memory that ranks of one host share (block_cache.h). When that has an end, and in
// a forked child, tensors lie in ordinary memory: any call takes those too.
#ifndef RING_TORCH_MEMORY_H
#define RING_TORCH_MEMORY_H

#include <ATen/ATen.h>

namespace ring_torch
{

/// A tensor of one dimension. One for another device than the CPU lies where torch puts it.
at::Tensor shared_tensor(int64_t numel, const at::TensorOptions &options);

/// From here to leave_memory() this thread's new tensors lie in shared memory. Pairs may be nested.
/// The first one puts an allocator before torch's; other threads get what they always got.
void enter_memory();
void leave_memory();

bool is_shared(const at::Tensor &tensor);

} // namespace ring_torch

#endif

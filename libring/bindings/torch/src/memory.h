// SPDX-License-Identifier: Apache-2.0
// Allocates tensors in the memory that ranks of one host share (block_cache.h). When no shared
// memory is left, and in a forked child, tensors are in ordinary memory, which all calls accept,
// too.
#ifndef RING_TORCH_MEMORY_H
#define RING_TORCH_MEMORY_H

#include <ATen/ATen.h>

namespace ring_torch
{

/// Returns a tensor of one dimension. A tensor for another device than the CPU is allocated by
/// torch.
at::Tensor shared_tensor(int64_t numel, const at::TensorOptions &options);

/// From here to leave_memory() this thread's new tensors are in shared memory. Pairs may be nested.
/// The first call puts an allocator in front of torch's; other threads are not affected.
void enter_memory();
void leave_memory();

bool is_shared(const at::Tensor &tensor);

} // namespace ring_torch

#endif

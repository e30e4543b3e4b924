// SPDX-License-Identifier: Apache-2.0
// Allocates tensors in memory that ranks of one host share (block_cache.h). When no shared memory
// is left, and in a forked child, tensors are in ordinary memory, which all calls also accept.
#ifndef RING_TORCH_MEMORY_H
#define RING_TORCH_MEMORY_H

#include <ATen/ATen.h>

namespace ring_torch
{

/// Returns a tensor of one dimension with `numel` elements. A tensor for another device than the
/// CPU is allocated by torch.
at::Tensor shared_tensor(int64_t numel, const at::TensorOptions &options);

/// Between enter_memory() and leave_memory(), new tensors of this thread are in shared memory.
/// Pairs may be nested. The first call replaces torch's CPU allocator with one that uses shared
/// memory only for threads between these calls.
void enter_memory();
void leave_memory();

/// Returns true if the tensor is in shared memory of this process.
bool is_shared(const at::Tensor &tensor);

} // namespace ring_torch

#endif

// SPDX-License-Identifier: Apache-2.0
// Maps torch's element types and reductions to those of libring.
#ifndef RING_TORCH_TYPES_H
#define RING_TORCH_TYPES_H

#include <cstddef>
#include <optional>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/version.h>

#include "ring/ring.h"

// True if the headers are those of torch 2.`minor` or newer.
#define RING_TORCH_FROM(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= minor)

namespace ring_torch
{

/// Describes one element of a tensor as elements of a libring type: a complex number is two floats,
/// and an element without such a type, which can only be moved, is its bytes.
struct Elements {
    ring_dtype dtype;
    size_t each; // number of libring's elements in one element of the tensor
};

/// Returns the elements of any type, for calls that only move them.
Elements moved_elements(at::ScalarType type);

/// The elements and operation of a call that combines elements.
struct Reduction {
    Elements elements;
    ring_op op;
    std::optional<double> scale; // the factor of RING_PREMUL_SUM
};

/// Returns the reduction for torch's `op` on elements of `type`. Throws a ValueError for a
/// combination without a meaning, such as a product of complex numbers; its text says what to use
/// instead.
Reduction reduction_of(const c10d::ReduceOp &op, at::ScalarType type);

} // namespace ring_torch

#endif

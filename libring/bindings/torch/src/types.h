// SPDX-License-Identifier: Apache-2.0
// Maps torch's element types and reductions to those of libring.
#ifndef RING_TORCH_TYPES_H
#define RING_TORCH_TYPES_H

#include <cstddef>
#include <optional>

#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/version.h>

#include "ring/ring.h"

// Whether the headers are those of torch 2.`minor` or newer.
#define RING_TORCH_FROM(minor) (TORCH_VERSION_MAJOR > 2 || TORCH_VERSION_MINOR >= minor)

namespace ring_torch
{

/// The elements of a tensor in libring's types: a complex number is two floats, and an element that
/// is only moved and has no type of libring is its bytes.
struct Elements {
    ring_dtype dtype;
    size_t each; // libring's elements in one element of the tensor
};

/// For calls that move elements of any type.
Elements moved_elements(at::ScalarType type);

/// For calls that combine elements.
struct Reduction {
    Elements elements;
    ring_op op;
    std::optional<double> scale; // of RING_PREMUL_SUM
};

/// Throws a ValueError for a combination without a meaning, such as a product of complex numbers;
/// the message says what to use instead.
Reduction reduction_of(const c10d::ReduceOp &op, at::ScalarType type);

} // namespace ring_torch

#endif

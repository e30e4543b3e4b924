// SPDX-License-Identifier: Apache-2.0
// Torch's element types and reductions as those of libring.
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

/// Elements as libring counts them: a complex number is two floats, what is only moved and has no
/// type of libring's is so many bytes.
struct Elements {
    ring_dtype dtype;
    size_t each; // of them in one element of the tensor
};

/// For calls that move elements: any type.
Elements moved_elements(at::ScalarType type);

/// For calls that combine elements.
struct Reduction {
    Elements elements;
    ring_op op;
    std::optional<double> scale; // of RING_PREMUL_SUM
};

/// Throws a ValueError that says what to use for a combination that has no meaning, a product of
/// complex numbers say.
Reduction reduction_of(const c10d::ReduceOp &op, at::ScalarType type);

} // namespace ring_torch

#endif

// SPDX-License-Identifier: Apache-2.0
// Checks tensors, and makes contiguous copies of those that libring cannot use in place.
#include "call_buffers.h"

#include <c10/util/Exception.h>

namespace ring_torch
{

namespace
{

// An empty tensor has no memory, but libring needs an aligned address.
alignas(16) char nothing[16];

void *address(const at::Tensor &tensor)
{
    return tensor.numel() == 0 ? nothing : tensor.mutable_data_ptr();
}

// Returns true if the memory contains the tensor's values in the order of its indices. A conjugate
// or negative view does not: its memory contains the values of its base.
bool lies(const at::Tensor &tensor)
{
    return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

} // namespace

void check_tensor(const at::Tensor &tensor, const char *call)
{
    TORCH_CHECK(tensor.defined(), "ring: ", call, ": the tensor is undefined");
    TORCH_CHECK(
        tensor.device().is_cpu(), "ring: ", call, ": the tensor is on ", tensor.device(),
        "; this backend is for tensors on the CPU: move the tensor there, or give its device a "
        "backend, too, as in \"cpu:ring,cuda:nccl\"");
    TORCH_CHECK(tensor.layout() == at::kStrided, "ring: ", call, ": the tensor has layout ",
                tensor.layout(),
                "; only all_reduce with SUM accepts sparse tensors: use to_dense()");
}

const at::Tensor &only_tensor(const Tensors &tensors, const char *call, const char *which)
{
    TORCH_CHECK(tensors.size() == 1, "ring: ", call, " takes one ", which, " per rank, not ",
                tensors.size());
    check_tensor(tensors[0], call);
    return tensors[0];
}

void check_same_type(const at::Tensor &a, const at::Tensor &b, const char *call)
{
    TORCH_CHECK(a.scalar_type() == b.scalar_type(), "ring: ", call, ": the tensors have types ",
                a.scalar_type(), " and ", b.scalar_type(),
                "; all tensors of a call must have the same type");
}

const void *CallBuffers::input(const at::Tensor &tensor)
{
    kept_.push_back(lies(tensor) ? tensor : tensor.resolve_conj().resolve_neg().contiguous());
    return address(kept_.back());
}

void *CallBuffers::output(const at::Tensor &tensor)
{
    kept_.push_back(tensor);
    if (lies(tensor))
        return address(tensor);
    at::Tensor copy = at::empty(tensor.sizes(), tensor.options());
    kept_.push_back(copy);
    afterwards([tensor, copy] { tensor.copy_(copy); });
    return address(copy);
}

void *CallBuffers::in_place(const at::Tensor &tensor)
{
    void *memory = output(tensor);
    if (!lies(tensor))
        kept_.back().copy_(tensor);
    return memory;
}

void CallBuffers::finish()
{
    at::NoGradGuard no_grad;
    for (auto &step : steps_)
        step();
    steps_.clear();
}

void CallBuffers::add(CallBuffers &&other)
{
    std::move(other.kept_.begin(), other.kept_.end(), std::back_inserter(kept_));
    std::move(other.steps_.begin(), other.steps_.end(), std::back_inserter(steps_));
}

namespace
{

template <class Function>
Blocks blocks_of(const Tensors &tensors, const char *call, Function &&memory)
{
    Blocks blocks;
    for (const at::Tensor &tensor : tensors) {
        check_tensor(tensor, call);
        check_same_type(tensors[0], tensor, call);
        blocks.counts.push_back(tensor.numel() * moved_elements(tensor.scalar_type()).each);
        blocks.addresses.push_back(memory(tensor));
    }
    return blocks;
}

} // namespace

Blocks input_blocks(CallBuffers &buffers, const Tensors &tensors, const char *call)
{
    return blocks_of(tensors, call, [&](const at::Tensor &tensor) {
        return const_cast<void *>(buffers.input(tensor));
    });
}

Blocks output_blocks(CallBuffers &buffers, const Tensors &tensors, const char *call)
{
    return blocks_of(tensors, call,
                     [&](const at::Tensor &tensor) { return buffers.output(tensor); });
}

} // namespace ring_torch

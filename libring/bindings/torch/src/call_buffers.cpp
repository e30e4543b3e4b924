// SPDX-License-Identifier: Apache-2.0
#include "call_buffers.h"

#include <c10/util/Exception.h>

namespace ring_torch
{

namespace
{

// An empty tensor has no memory; libring wants an aligned address.
alignas(16) char nothing[16];

void *address(const at::Tensor &tensor)
{
    return tensor.numel() == 0 ? nothing : tensor.mutable_data_ptr();
}

bool lies(const at::Tensor &tensor, Order order)
{
    return order == Order::index ? tensor.is_contiguous() : tensor.is_non_overlapping_and_dense();
}

} // namespace

void check_tensor(const at::Tensor &tensor, const char *call)
{
    TORCH_CHECK(tensor.defined(), "ring: ", call, ": an undefined tensor");
    TORCH_CHECK(
        tensor.device().is_cpu(), "ring: ", call, ": a tensor on ", tensor.device(),
        "; this backend is for tensors on the CPU: move it there, or name a backend for its "
        "device too, as in \"cpu:ring,cuda:nccl\"");
    TORCH_CHECK(tensor.layout() == at::kStrided, "ring: ", call, ": a tensor of layout ",
                tensor.layout(), "; only all_reduce with SUM takes sparse ones: use to_dense()");
}

const void *CallBuffers::input(const at::Tensor &tensor, Order order)
{
    kept_.push_back(lies(tensor, order) ? tensor : tensor.contiguous());
    return address(kept_.back());
}

void *CallBuffers::output(const at::Tensor &tensor, Order order)
{
    kept_.push_back(tensor);
    if (lies(tensor, order))
        return address(tensor);
    at::Tensor copy = at::empty(tensor.sizes(), tensor.options());
    kept_.push_back(copy);
    afterwards([tensor, copy] { tensor.copy_(copy); });
    return address(copy);
}

void *CallBuffers::in_place(const at::Tensor &tensor, Order order)
{
    void *memory = output(tensor, order);
    if (!lies(tensor, order))
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

void check_same_type(const at::Tensor &a, const at::Tensor &b, const char *call)
{
    TORCH_CHECK(a.scalar_type() == b.scalar_type(), "ring: ", call, ": tensors of ",
                a.scalar_type(), " and ", b.scalar_type(), "; all tensors of a call have one type");
}

namespace
{

size_t block_count(const Tensors &tensors, size_t i, const char *call)
{
    check_tensor(tensors[i], call);
    check_same_type(tensors[0], tensors[i], call);
    return tensors[i].numel() * moved_elements(tensors[i].scalar_type()).each;
}

} // namespace

Blocks input_blocks(CallBuffers &buffers, const Tensors &tensors, const char *call)
{
    Blocks blocks;
    for (size_t i = 0; i < tensors.size(); i++) {
        blocks.counts.push_back(block_count(tensors, i, call));
        blocks.inputs.push_back(buffers.input(tensors[i], Order::index));
    }
    return blocks;
}

Blocks output_blocks(CallBuffers &buffers, const Tensors &tensors, const char *call)
{
    Blocks blocks;
    for (size_t i = 0; i < tensors.size(); i++) {
        blocks.counts.push_back(block_count(tensors, i, call));
        blocks.outputs.push_back(buffers.output(tensors[i], Order::index));
    }
    return blocks;
}

bool is_one_buffer(const Tensors &tensors)
{
    for (size_t i = 0; i < tensors.size(); i++) {
        const char *first = static_cast<const char *>(tensors[0].const_data_ptr());
        if (!tensors[i].is_contiguous() || tensors[i].nbytes() != tensors[0].nbytes() ||
            tensors[i].const_data_ptr() != first + i * tensors[0].nbytes())
            return false;
    }
    return !tensors.empty();
}

} // namespace ring_torch

// SPDX-License-Identifier: Apache-2.0
#include "call_buffers.h"

#include <c10/util/Exception.h>

namespace ring_torch
{

namespace
{

// An empty tensor has no memory; libring wants an address.
char nothing;

void *address(const at::Tensor &tensor)
{
    return tensor.numel() == 0 ? &nothing : tensor.mutable_data_ptr();
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

void CallBuffers::release()
{
    kept_.clear();
    steps_.clear();
}

} // namespace ring_torch

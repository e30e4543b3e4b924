// SPDX-License-Identifier: Apache-2.0
// Operations that combine elements.
#include "backend.h"

namespace ring_torch
{

namespace
{

const at::Tensor &only(const Tensors &tensors, const char *call)
{
    TORCH_CHECK(tensors.size() == 1, "ring: ", call, " takes one tensor a rank, not ",
                tensors.size());
    check_tensor(tensors[0], call);
    return tensors[0];
}

} // namespace

WorkPtr ProcessGroupRing::allreduce(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    const at::Tensor &tensor = only(tensors, "all_reduce");
    Reduction reduction = reduction_of(options.reduceOp, tensor.scalar_type());
    sequence_++;
    Request request{c10d::OpType::ALLREDUCE, "ring:all_reduce", options.timeout, options.asyncOp};
    request.inputs = tensors;
    request.result = tensors;
    void *memory = request.buffers.in_place(tensor, Order::memory);
    size_t count = tensor.numel() * reduction.elements.each;
    return run(std::move(request), [&](ring_comm *comm, Starter starter) {
        return ring_all_reduce(memory, memory, count, reduction.elements.dtype, reduction.op, comm,
                               starter.next(reduction));
    });
}

} // namespace ring_torch

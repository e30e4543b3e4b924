// SPDX-License-Identifier: Apache-2.0
// Implements the collectives that combine elements: all_reduce, reduce and reduce_scatter.
#include "backend.h"

namespace ring_torch
{

namespace
{

// The arguments of an all_reduce in place.
struct InPlace {
    void *memory;
    size_t count;
    Reduction reduction;
};

InPlace in_place(CallBuffers &buffers, const at::Tensor &tensor, const c10d::ReduceOp &op)
{
    const Reduction reduction = reduction_of(op, tensor.scalar_type());
    return {buffers.in_place(tensor), tensor.numel() * reduction.elements.each, reduction};
}

ring_status start(const InPlace &p, ring_comm *comm, Starter &starter)
{
    return ring_all_reduce(p.memory, p.memory, p.count, p.reduction.elements.dtype, p.reduction.op,
                           comm, starter.next(p.reduction));
}

// The arguments of a reduce_scatter of `input` (ranks * count) into `output` (count).
struct Scattered {
    const void *input;
    void *output;
    size_t count;
    Reduction reduction;
};

Scattered scattered(CallBuffers &buffers, const at::Tensor &output, const at::Tensor &input,
                    int ranks, const c10d::ReduceOp &op)
{
    const char *call = "reduce_scatter_tensor";
    check_tensor(output, call);
    check_tensor(input, call);
    check_same_type(output, input, call);
    TORCH_CHECK_VALUE(input.numel() == output.numel() * ranks, "ring: ", call,
                      ": input tensor must be the same size as output size times world size: ",
                      input.numel(), " elements are not ", ranks, " times ", output.numel());
    const Reduction reduction = reduction_of(op, input.scalar_type());
    return {buffers.input(input), buffers.output(output), output.numel() * reduction.elements.each,
            reduction};
}

ring_status start(const Scattered &s, ring_comm *comm, Starter &starter)
{
    return ring_reduce_scatter(s.input, s.output, s.count, s.reduction.elements.dtype,
                               s.reduction.op, comm, starter.next(s.reduction));
}

} // namespace

WorkPtr ProcessGroupRing::allreduce(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    if (tensors.size() == 1 && tensors[0].is_sparse())
        return allreduce_sparse(tensors, options);
    const at::Tensor &tensor = only_tensor(tensors, "all_reduce");
    Request request{c10d::OpType::ALLREDUCE, "ring:all_reduce", options.timeout, options.asyncOp};
    const InPlace p = in_place(request.buffers, tensor, options.reduceOp);
    request.inputs = tensors;
    request.result = tensors;
    return run(std::move(request),
               [p](ring_comm *comm, Starter &starter) { return start(p, comm, starter); });
}

WorkPtr ProcessGroupRing::allreduce_coalesced(Tensors &tensors,
                                              const c10d::AllreduceCoalescedOptions &options)
{
    Request request{c10d::OpType::ALLREDUCE_COALESCED, "ring:all_reduce", options.timeout,
                    options.asyncOp};
    std::vector<InPlace> all;
    for (const at::Tensor &tensor : tensors) {
        check_tensor(tensor, "all_reduce_coalesced");
        all.push_back(in_place(request.buffers, tensor, options.reduceOp));
    }
    request.inputs = tensors;
    request.result = tensors;
    return run(std::move(request), [all = std::move(all)](ring_comm *comm, Starter &starter) {
        return together(all, [&](const auto &each) { return start(each, comm, starter); });
    });
}

WorkPtr ProcessGroupRing::reduce(Tensors &tensors, const c10d::ReduceOptions &options)
{
    const at::Tensor &tensor = only_tensor(tensors, "reduce");
    Request request{c10d::OpType::REDUCE, "ring:reduce", options.timeout, options.asyncOp};
    const int root = int(options.rootRank);
    const Reduction reduction = reduction_of(options.reduceOp, tensor.scalar_type());
    void *dst = rank_ == root ? request.buffers.in_place(tensor) : nullptr;
    const void *src = dst ? dst : request.buffers.input(tensor);
    const size_t count = tensor.numel() * reduction.elements.each;
    request.inputs = tensors;
    request.result = tensors;
    return run(std::move(request), [=](ring_comm *comm, Starter &starter) {
        return ring_reduce(src, dst, count, reduction.elements.dtype, reduction.op, root, comm,
                           starter.next(reduction));
    });
}

// The parts may differ in length. All ranks must pass the same lengths.
WorkPtr ProcessGroupRing::reduce_scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                                         const c10d::ReduceScatterOptions &options)
{
    const char *call = "reduce_scatter";
    const at::Tensor &output = only_tensor(outputs, call);
    TORCH_CHECK(inputs.size() == 1 && inputs[0].size() == size_t(size_), "ring: ", call,
                ": the input must be one list with a tensor for each of the ", size_, " ranks");
    Request request{c10d::OpType::REDUCE_SCATTER, "ring:reduce_scatter", options.timeout,
                    options.asyncOp};
    const Reduction reduction = reduction_of(options.reduceOp, output.scalar_type());
    check_same_type(output, inputs[0][0], call);
    TORCH_CHECK(output.numel() == inputs[0][rank_].numel(), "ring: ", call, ": the output has ",
                output.numel(), " elements, but this rank's part of the input has ",
                inputs[0][rank_].numel());
    Blocks blocks = input_blocks(request.buffers, inputs[0], call);
    void *dst = request.buffers.output(output);
    request.inputs = inputs[0];
    request.result = outputs;
    return run(std::move(request),
               [=, blocks = std::move(blocks)](ring_comm *comm, Starter &starter) {
                   return ring_reduce_scatter_list(blocks.addresses.data(), blocks.counts.data(),
                                                   dst, reduction.elements.dtype, reduction.op,
                                                   comm, starter.next(reduction));
               });
}

WorkPtr ProcessGroupRing::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                               const c10d::ReduceScatterOptions &options)
{
    Request request{c10d::OpType::_REDUCE_SCATTER_BASE, "ring:reduce_scatter_tensor",
                    options.timeout, options.asyncOp};
    const Scattered s = scattered(request.buffers, output, input, size_, options.reduceOp);
    request.inputs = {input};
    request.result = {output};
    return run(std::move(request),
               [s](ring_comm *comm, Starter &starter) { return start(s, comm, starter); });
}

WorkPtr ProcessGroupRing::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                          const c10d::ReduceScatterOptions &options)
{
    TORCH_CHECK(outputs.size() == inputs.size(),
                "ring: reduce_scatter_tensor_coalesced: there are ", outputs.size(),
                " outputs, but ", inputs.size(), " inputs");
    Request request{c10d::OpType::COALESCED, "ring:reduce_scatter_tensor", options.timeout,
                    options.asyncOp};
    std::vector<Scattered> all;
    for (size_t i = 0; i < inputs.size(); i++)
        all.push_back(scattered(request.buffers, outputs[i], inputs[i], size_, options.reduceOp));
    request.inputs = inputs;
    request.result = outputs;
    return run(std::move(request), [all = std::move(all)](ring_comm *comm, Starter &starter) {
        return together(all, [&](const auto &each) { return start(each, comm, starter); });
    });
}

} // namespace ring_torch

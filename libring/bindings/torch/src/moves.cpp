// SPDX-License-Identifier: Apache-2.0
// Implements the collectives that move elements without combining them, for tensors of all types.
#include "backend.h"

#include <torch/csrc/distributed/c10d/Utils.hpp>

namespace ring_torch
{

namespace
{

const Tensors &only_list(const std::vector<Tensors> &lists, int ranks, const char *call,
                         const char *which)
{
    TORCH_CHECK(lists.size() == 1, "ring: ", call, " requires a single-element ", which,
                " list containing a list with ", ranks, " tensors.");
    TORCH_CHECK(lists[0].size() == size_t(ranks), "ring: ", call, ": Incorrect ", which,
                " list size ", lists[0].size(), ". The ", which, " list size should be ", ranks,
                ", same as size of the process group.");
    return lists[0];
}

void check_no_list(const std::vector<Tensors> &lists, const char *call, const char *which)
{
    TORCH_CHECK(lists.empty() || (lists.size() == 1 && lists[0].empty()), "ring: ", call,
                " requires empty ", which, " on non-root");
}

// The arguments of an all_gather of `input` (count) into `output` (ranks * count).
struct Gathered {
    const void *input;
    void *output;
    size_t count;
    ring_dtype dtype;
};

Gathered gathered(CallBuffers &buffers, const at::Tensor &output, const at::Tensor &input,
                  int ranks)
{
    const char *call = "all_gather_into_tensor";
    check_tensor(output, call);
    check_tensor(input, call);
    check_same_type(output, input, call);
    TORCH_CHECK_VALUE(output.numel() == input.numel() * ranks, "ring: ", call,
                      ": output tensor size must be equal to world_size times input tensor size: ",
                      output.numel(), " elements are not ", ranks, " times ", input.numel());
    const Elements elements = moved_elements(input.scalar_type());
    return {buffers.input(input), buffers.output(output), input.numel() * elements.each,
            elements.dtype};
}

ring_status start(const Gathered &g, ring_comm *comm, Starter &starter)
{
    return ring_all_gather(g.input, g.output, g.count, g.dtype, comm, starter.next());
}

// The arguments of an all_gather of `input` into a list of tensors, one for each rank, which may
// differ in length.
struct GatheredList {
    const void *input;
    Blocks outputs;
    ring_dtype dtype;
};

GatheredList gathered_list(CallBuffers &buffers, const Tensors &outputs, const at::Tensor &input,
                           const char *call)
{
    check_tensor(input, call);
    check_same_type(input, outputs[0], call);
    return {buffers.input(input), output_blocks(buffers, outputs, call),
            moved_elements(input.scalar_type()).dtype};
}

ring_status start(const GatheredList &g, ring_comm *comm, Starter &starter)
{
    return ring_all_gather_list(g.input, g.outputs.addresses.data(), g.outputs.counts.data(),
                                g.dtype, comm, starter.next());
}

// The blocks of an all_to_all: for each rank, the number of its elements and their offset in the
// tensor, in libring's elements.
struct Splits {
    std::vector<size_t> counts, displs;
};

Splits splits_of(const std::vector<int64_t> &rows, const at::Tensor &tensor, int ranks)
{
    TORCH_CHECK(tensor.dim() > 0,
                "ring: all_to_all_single: the tensor has no dimension that could be split");
    c10d::checkSplitSizes(rows, tensor, ranks);
    Splits splits{std::vector<size_t>(ranks), std::vector<size_t>(ranks)};
    c10d::computeLengthsAndOffsets(rows, tensor, &splits.counts, &splits.displs);
    const size_t each = moved_elements(tensor.scalar_type()).each;
    for (int rank = 0; rank < ranks; rank++) {
        splits.counts[rank] *= each;
        splits.displs[rank] *= each;
    }
    return splits;
}

} // namespace

WorkPtr ProcessGroupRing::broadcast(Tensors &tensors, const c10d::BroadcastOptions &options)
{
    const at::Tensor &tensor = only_tensor(tensors, "broadcast", "input tensor");
    Request request{c10d::OpType::BROADCAST, "ring:broadcast", options.timeout, options.asyncOp};
    const Elements elements = moved_elements(tensor.scalar_type());
    const int root = int(options.rootRank);
    const bool gives = rank_ == root;
    const void *src = gives ? request.buffers.input(tensor) : nullptr;
    void *dst = gives ? const_cast<void *>(src) : request.buffers.output(tensor);
    const size_t count = tensor.numel() * elements.each;
    request.inputs = tensors;
    request.result = tensors;
    return run(std::move(request), [=](ring_comm *comm, Starter &starter) {
        return ring_broadcast(src, dst, count, elements.dtype, root, comm, starter.next());
    });
}

// Uses the list call even if the outputs are consecutive parts of one buffer, because that may not
// be the case on other ranks, and all ranks must make the same call.
WorkPtr ProcessGroupRing::allgather(std::vector<Tensors> &outputs, Tensors &inputs,
                                    const c10d::AllgatherOptions &options)
{
    const char *call = "all_gather";
    const at::Tensor &input = only_tensor(inputs, call, "input tensor");
    const Tensors &list = only_list(outputs, size_, call, "output");
    TORCH_CHECK(input.numel() == list[rank_].numel(), "ring: ", call, ": the input has ",
                input.numel(), " elements, but this rank's tensor in the output list has ",
                list[rank_].numel());
    Request request{c10d::OpType::ALLGATHER, "ring:all_gather", options.timeout, options.asyncOp};
    GatheredList g = gathered_list(request.buffers, list, input, call);
    request.inputs = inputs;
    request.result = list;
    return run(std::move(request), [g = std::move(g)](ring_comm *comm, Starter &starter) {
        return start(g, comm, starter);
    });
}

WorkPtr ProcessGroupRing::_allgather_base(at::Tensor &output, at::Tensor &input,
                                          const c10d::AllgatherOptions &options)
{
    Request request{c10d::OpType::_ALLGATHER_BASE, "ring:all_gather_into_tensor", options.timeout,
                    options.asyncOp};
    const Gathered g = gathered(request.buffers, output, input, size_);
    request.inputs = {input};
    request.result = {output};
    return run(std::move(request),
               [g](ring_comm *comm, Starter &starter) { return start(g, comm, starter); });
}

WorkPtr ProcessGroupRing::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                                          const c10d::AllgatherOptions &options)
{
    TORCH_CHECK(outputs.size() == inputs.size(),
                "ring: all_gather_into_tensor_coalesced: there are ", outputs.size(),
                " outputs, but ", inputs.size(), " inputs");
    Request request{c10d::OpType::COALESCED, "ring:all_gather_into_tensor", options.timeout,
                    options.asyncOp};
    std::vector<Gathered> all;
    for (size_t i = 0; i < inputs.size(); i++)
        all.push_back(gathered(request.buffers, outputs[i], inputs[i], size_));
    request.inputs = inputs;
    request.result = outputs;
    return run(std::move(request), [all = std::move(all)](ring_comm *comm, Starter &starter) {
        return together(all, [&](const auto &each) { return start(each, comm, starter); });
    });
}

// Stores inputs[i] of each rank to outputs[rank][i].
WorkPtr ProcessGroupRing::allgather_coalesced(std::vector<Tensors> &outputs, Tensors &inputs,
                                              const c10d::AllgatherOptions &options)
{
    const char *call = "all_gather_coalesced";
    TORCH_CHECK(outputs.size() == size_t(size_), "ring: ", call, ": there are ", outputs.size(),
                " output lists for ", size_, " ranks");
    Request request{c10d::OpType::ALLGATHER_COALESCED, "ring:all_gather", options.timeout,
                    options.asyncOp};
    std::vector<GatheredList> all;
    for (size_t i = 0; i < inputs.size(); i++) {
        Tensors list;
        for (const Tensors &of_rank : outputs) {
            TORCH_CHECK(of_rank.size() == inputs.size(), "ring: ", call, ": an output list has ",
                        of_rank.size(), " tensors, but there are ", inputs.size(), " inputs");
            TORCH_CHECK(of_rank[i].numel() == inputs[i].numel(), "ring: ", call, ": output ", i,
                        " has ", of_rank[i].numel(), " elements, but the input has ",
                        inputs[i].numel());
            list.push_back(of_rank[i]);
        }
        all.push_back(gathered_list(request.buffers, list, inputs[i], call));
    }
    request.inputs = inputs;
    return run(std::move(request), [all = std::move(all)](ring_comm *comm, Starter &starter) {
        return together(all, [&](const auto &each) { return start(each, comm, starter); });
    });
}

WorkPtr ProcessGroupRing::gather(std::vector<Tensors> &outputs, Tensors &inputs,
                                 const c10d::GatherOptions &options)
{
    const char *call = "gather";
    const at::Tensor &input = only_tensor(inputs, call, "input tensor");
    const int root = int(options.rootRank);
    Request request{c10d::OpType::GATHER, "ring:gather", options.timeout, options.asyncOp};
    const Elements elements = moved_elements(input.scalar_type());
    const void *src = request.buffers.input(input);
    const size_t count = input.numel() * elements.each;
    Blocks blocks;
    if (rank_ == root) {
        const Tensors &list = only_list(outputs, size_, call, "output");
        check_same_type(input, list[0], call);
        blocks = output_blocks(request.buffers, list, call);
        request.result = list;
    } else {
        check_no_list(outputs, call, "output");
    }
    request.inputs = inputs;
    return run(std::move(request), [=, blocks = std::move(blocks)](ring_comm *comm,
                                                                   Starter &starter) {
        return ring_gather_list(src, count, blocks.addresses.data(), blocks.counts.data(),
                                elements.dtype, root, comm, starter.next());
    });
}

WorkPtr ProcessGroupRing::scatter(Tensors &outputs, std::vector<Tensors> &inputs,
                                  const c10d::ScatterOptions &options)
{
    const char *call = "scatter";
    const at::Tensor &output = only_tensor(outputs, call, "output tensor");
    const int root = int(options.rootRank);
    Request request{c10d::OpType::SCATTER, "ring:scatter", options.timeout, options.asyncOp};
    const Elements elements = moved_elements(output.scalar_type());
    Blocks blocks;
    if (rank_ == root) {
        const Tensors &list = only_list(inputs, size_, call, "input");
        check_same_type(output, list[0], call);
        blocks = input_blocks(request.buffers, list, call);
        request.inputs = list;
    } else {
        check_no_list(inputs, call, "input");
    }
    void *dst = request.buffers.output(output);
    const size_t count = output.numel() * elements.each;
    request.result = outputs;
    return run(std::move(request),
               [=, blocks = std::move(blocks)](ring_comm *comm, Starter &starter) {
                   return ring_scatter_list(blocks.addresses.data(), blocks.counts.data(), dst,
                                            count, elements.dtype, root, comm, starter.next());
               });
}

WorkPtr ProcessGroupRing::alltoall_base(at::Tensor &output, at::Tensor &input,
                                        std::vector<int64_t> &output_splits,
                                        std::vector<int64_t> &input_splits,
                                        const c10d::AllToAllOptions &options)
{
    const char *call = "all_to_all_single";
    check_tensor(output, call);
    check_tensor(input, call);
    check_same_type(output, input, call);
    Request request{c10d::OpType::ALLTOALL_BASE, "ring:all_to_all", options.timeout,
                    options.asyncOp};
    const ring_dtype dtype = moved_elements(input.scalar_type()).dtype;
    Splits from = splits_of(input_splits, input, size_);
    Splits to = splits_of(output_splits, output, size_);
    const void *src = request.buffers.input(input);
    void *dst = request.buffers.output(output);
    const bool even = input_splits.empty() && output_splits.empty();
    request.inputs = {input};
    request.result = {output};
    return run(std::move(request), [=, from = std::move(from),
                                    to = std::move(to)](ring_comm *comm, Starter &starter) {
        if (even && from.counts[0] == to.counts[0])
            return ring_all_to_all(src, dst, from.counts[0], dtype, comm, starter.next());
        return ring_all_to_all_v(src, from.counts.data(), from.displs.data(), dst, to.counts.data(),
                                 to.displs.data(), dtype, comm, starter.next());
    });
}

WorkPtr ProcessGroupRing::alltoall(Tensors &outputs, Tensors &inputs,
                                   const c10d::AllToAllOptions &options)
{
    const char *call = "all_to_all";
    TORCH_CHECK(outputs.size() == size_t(size_) && inputs.size() == size_t(size_), "ring: ", call,
                ": there are ", outputs.size(), " outputs and ", inputs.size(),
                " inputs, but there must be one of each for each of the ", size_, " ranks");
    check_same_type(outputs[0], inputs[0], call);
    Request request{c10d::OpType::ALLTOALL, "ring:all_to_all", options.timeout, options.asyncOp};
    Blocks from = input_blocks(request.buffers, inputs, call);
    Blocks to = output_blocks(request.buffers, outputs, call);
    const ring_dtype dtype = moved_elements(inputs[0].scalar_type()).dtype;
    request.inputs = inputs;
    request.result = outputs;
    return run(std::move(request), [=, from = std::move(from),
                                    to = std::move(to)](ring_comm *comm, Starter &starter) {
        return ring_all_to_all_list(from.addresses.data(), from.counts.data(), to.addresses.data(),
                                    to.counts.data(), dtype, comm, starter.next());
    });
}

} // namespace ring_torch

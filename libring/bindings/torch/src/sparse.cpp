// SPDX-License-Identifier: Apache-2.0
// Implements all_reduce of sparse COO tensors: every rank gathers the entries of all ranks and adds
// them.
#include "backend.h"

namespace ring_torch
{

namespace
{

// Gathers a dense tensor from each rank. Rank r's tensor has rows[r] rows.
Tensors gather_rows(const at::Tensor &own, const std::vector<int64_t> &rows, ring_comm *comm)
{
    Tensors all;
    std::vector<void *> outputs;
    std::vector<size_t> counts;
    const Elements elements = moved_elements(own.scalar_type());
    for (int64_t n : rows) {
        auto sizes = own.sizes().vec();
        sizes[0] = n;
        all.push_back(at::empty(sizes, own.options()));
        outputs.push_back(all.back().mutable_data_ptr());
        counts.push_back(all.back().numel() * elements.each);
    }
    check(ring_all_gather_list(own.const_data_ptr(), outputs.data(), counts.data(), elements.dtype,
                               comm, nullptr));
    return all;
}

// Returns the number of entries of each rank. Throws on all ranks if their tensors have different
// shapes.
std::vector<int64_t> numbers_of_entries(const at::Tensor &own, int ranks, ring_comm *comm)
{
    std::vector<int64_t> facts = own.sizes().vec();
    facts.insert(facts.begin(), {own._nnz(), own.sparse_dim()});
    std::vector<int64_t> all(ranks * facts.size()), rows;
    check(ring_all_gather(facts.data(), all.data(), facts.size(), RING_INT64, comm, nullptr));
    for (auto other = all.begin(); other != all.end(); other += facts.size()) {
        TORCH_CHECK(std::equal(facts.begin() + 1, facts.end(), other + 1),
                    "ring: a sparse all_reduce has tensors that differ: this rank's tensor has the "
                    "shape ",
                    own.sizes(), " and ", facts[1], " sparse dimensions, but rank ", rows.size(),
                    "'s tensor has the shape ", at::IntArrayRef(&*other + 2, own.dim()), " and ",
                    other[1], " sparse dimensions");
        rows.push_back(*other);
    }
    return rows;
}

} // namespace

// Always blocks, because the numbers of entries must be known before entries can be gathered.
WorkPtr ProcessGroupRing::allreduce_sparse(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    TORCH_CHECK(tensors.size() == 1 && tensors[0].layout() == at::kSparse,
                "ring: a sparse all_reduce takes one sparse COO tensor per rank");
    TORCH_CHECK(options.reduceOp == c10d::ReduceOp::SUM,
                "ring: a sparse all_reduce supports only SUM; use to_dense() for other reductions");
    const Communicator::Use comm(communicator_);
    at::Tensor own = tensors[0].coalesce();
    const std::vector<int64_t> rows = numbers_of_entries(own, size_, comm);
    Tensors indices = gather_rows(own._indices().t().contiguous(), rows, comm);
    Tensors values = gather_rows(own._values().contiguous(), rows, comm);
    at::Tensor sum = at::sparse_coo_tensor(at::cat(indices).t(), at::cat(values), own.sizes(),
                                           own.options())
                         .coalesce();
    tensors[0].copy_(sum);
    Request request{c10d::OpType::_ALLREDUCE_SPARSE, "ring:all_reduce_sparse", options.timeout,
                    options.asyncOp};
    request.result = tensors;
    return run(std::move(request), [](ring_comm *, Starter &) { return RING_OK; });
}

} // namespace ring_torch

// SPDX-License-Identifier: Apache-2.0
// Implements the creation of new groups from existing ones: split, merge and shrink.
#include "backend.h"

#include <algorithm>

namespace ring_torch
{

c10::intrusive_ptr<c10d::Backend> ProcessGroupRing::of_some_ranks(ring_comm *comm,
                                                                  std::chrono::milliseconds timeout)
{
    const int rank = ring_comm_rank(comm), size = ring_comm_size(comm);
    return c10::make_intrusive<ProcessGroupRing>(std::make_shared<Communicator>(comm), rank, size,
                                                 timeout);
}

// Returns true if all ranks of `part` have the same list. Ranks whose lists have the same first
// rank have the same colour, so they must compare their lists after the split.
static bool lists_are_equal(ring_comm *part, const std::vector<int> &ranks)
{
    uint64_t own = ranks.size();
    for (int rank : ranks)
        own = own * 1000003 + rank;
    std::vector<uint64_t> all(ring_comm_size(part));
    check(ring_all_gather(&own, all.data(), 1, RING_UINT64, part, nullptr));
    return all.size() == ranks.size() &&
           std::all_of(all.begin(), all.end(), [own](uint64_t other) { return other == own; });
}

c10::intrusive_ptr<c10d::Backend>
ProcessGroupRing::split(const c10::intrusive_ptr<c10d::Store> &, const std::vector<int> &ranks,
                        const c10::intrusive_ptr<BaseOptions> &options)
{
    const auto own = std::find(ranks.begin(), ranks.end(), rank_);
    const int colour = own == ranks.end() ? RING_SPLIT_NONE : ranks[0];
    ring_comm *part = nullptr;
    check(ring_comm_split(Communicator::Use(communicator_), colour, own - ranks.begin(), &part));
    if (!part)
        return {};
    auto group = of_some_ranks(part, timeout_of(options));
    const bool equal = lists_are_equal(part, ranks);
    TORCH_CHECK(equal, "ring: rank ", rank_, " splits with a list of ", ranks.size(),
                " ranks, and another of these ranks has a different list: the lists of any two "
                "ranks must be equal or have no rank in common");
    return group;
}

c10::intrusive_ptr<c10d::Backend>
ProcessGroupRing::merge(const c10::intrusive_ptr<c10d::Store> &store,
                        const c10::intrusive_ptr<BaseOptions> &options, const int &rank,
                        const int &size)
{
    return c10::make_intrusive<ProcessGroupRing>(store, rank, size, timeout_of(options));
}

#if RING_TORCH_FROM(10)
c10::intrusive_ptr<c10d::Backend>
ProcessGroupRing::shrink(const std::vector<int64_t> &excluded, int flags,
                         const c10::intrusive_ptr<BaseOptions> &options)
{
    constexpr int abort_first = 1;
    const Communicator::Use comm(communicator_);
    if (flags & abort_first)
        ring_comm_abort(comm, "torch.distributed shrinks the process group");
    const std::vector<int> left_out(excluded.begin(), excluded.end());
    ring_comm *rest = nullptr;
    ring_status status = ring_comm_exclude(comm, left_out.data(), left_out.size(), &rest);
    if (ring_comm_status(comm) != RING_OK && !rest)
        status = ring_comm_shrink(comm, &rest);
    check(status);
    auto group = of_some_ranks(rest, timeout_of(options));
    TORCH_CHECK(group->getSize() == size_ - int(left_out.size()), "ring: rank ", rank_, " of ",
                size_, " excludes ", left_out.size(), " ranks, but ", group->getSize(),
                " ranks survive: exclude exactly the lost ranks");
    return group;
}
#endif

} // namespace ring_torch

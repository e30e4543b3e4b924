// SPDX-License-Identifier: Apache-2.0
// Implements a barrier whose error names the missing ranks. Users call it as a method of the group,
// or with dist.monitored_barrier(), which accepts this backend from torch 2.14 on.
#include "backend.h"

namespace ring_torch
{

namespace
{

// Returns the text of the error. It has the wording of Gloo, because torch's own tests and tools
// that read logs expect it.
std::string text_of(int rank, const std::vector<int> &missing, bool all, int64_t milliseconds)
{
    std::string who = c10::str(all ? "Ranks " : "Rank ", missing[0]);
    for (size_t i = 1; all && i < missing.size(); i++)
        who += c10::str(", ", missing[i]);
    const std::string failed = c10::str(who, " failed to pass monitoredBarrier in ", milliseconds,
                                        " ms");
    if (rank == 0 && milliseconds == 0)
        return c10::str("[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms: ", failed);
    if (rank == 0)
        return c10::str("[Rank 0]: ", failed);
    return c10::str("[Rank ", rank, "]: Rank ", rank,
                    " successfully reached monitoredBarrier, but "
                    "received errors while waiting for send/recv from rank 0: ",
                    failed);
}

} // namespace

void ProcessGroupRing::monitoredBarrier(const c10d::BarrierOptions &options, bool wait_all_ranks)
{
    sequence_++;
    const auto timeout = timeout_or_own(options.timeout);
    std::vector<int> missing(size_);
    int count = 0;
    const ring_status status = ring_barrier_probe(Communicator::Use(communicator_),
                                                  std::chrono::duration<double>(timeout).count(),
                                                  missing.data(), &count);
    if (status == RING_IN_PROGRESS) {
        missing.resize(count);
        C10_THROW_ERROR(DistBackendError,
                        "ring: " + text_of(rank_, missing, wait_all_ranks, timeout.count()));
    }
    check(status);
}

} // namespace ring_torch

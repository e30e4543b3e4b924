/* SPDX-License-Identifier: Apache-2.0
 * Detects ranks that share cores by comparing their CPU masks: ranks that a launcher bound to
 * different cores have different masks, and unbound ranks have the same one. */
#include "crowding.h"

#include <string.h>

bool crowding_found(const control_card *cards, int ranks, int rank, double quota)
{
    const control_card *own = &cards[rank];
    uint32_t on_host = 0, on_cpus = 0;
    for (int p = 0; p < ranks; p++) {
        const bool near = memcmp(cards[p].host, own->host, sizeof own->host) == 0;
        on_host += near;
        on_cpus += near && cards[p].cpu_set == own->cpu_set;
    }
    return on_cpus > own->cpus || (quota > 0 && on_host > quota);
}

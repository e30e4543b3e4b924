/* SPDX-License-Identifier: Apache-2.0
 * Checks references to memory: those by which peers may access this process, and those by which
 * this process may access a peer.
 *
 * The heap is excluded, because its freed pages go back to the system without any notice to UCX's
 * registration cache. UCX would use stale pages for a later allocation at the same address. */
#include "ucx_regions.h"

#include <stdlib.h>

/* ---- This process ---------------------------------------------------------------------------- */

uint16_t ucx_region_of(uint64_t ref)
{
    return (uint16_t)(ref >> REGION_OFFSET_BITS);
}

uint64_t ucx_extent_of(uint64_t ref)
{
    region r;
    return ref != 0 && region_find(ref, &r) && r.kind == REGION_PLAIN ? r.bytes : 0;
}

void *ucx_address(uint64_t ref, uint64_t bytes)
{
    return ucx_extent_of(ref) > 0 ? region_address(ref, (size_t)bytes) : NULL;
}

uint64_t ucx_reachable_ref(const void *ptr, size_t bytes)
{
    const uint64_t ref = region_ref(ptr, bytes);
    return ucx_extent_of(ref) > 0 ? ref : 0;
}

/* ---- The peer -------------------------------------------------------------------------------- */

static ucx_extent *extent_of(const ucx_link *l, uint64_t ref)
{
    for (size_t i = 0; i < l->peer.extent_count; i++)
        if (l->peer.extents[i].region == ucx_region_of(ref))
            return &l->peer.extents[i];
    return NULL;
}

bool ucx_learn(ucx_link *l, uint64_t ref, uint64_t extent)
{
    if (ref == 0 || extent == 0)
        return true;
    ucx_extent *at = extent_of(l, ref);
    if (at == NULL) {
        ucx_extent *more = realloc(l->peer.extents, (l->peer.extent_count + 1) * sizeof *more);
        if (more == NULL)
            return false;
        l->peer.extents = more;
        at = &more[l->peer.extent_count++];
        at->region = ucx_region_of(ref);
    }
    at->bytes = extent;
    return true;
}

bool ucx_is_known(const ucx_link *l, uint64_t ref, size_t bytes)
{
    const ucx_extent *at = extent_of(l, ref);
    const uint64_t offset = ref & ((UINT64_C(1) << REGION_OFFSET_BITS) - 1);
    return at != NULL && bytes <= at->bytes && offset <= at->bytes - bytes;
}

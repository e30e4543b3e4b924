/* SPDX-License-Identifier: Apache-2.0
 * Buffers of all kinds of memory. */
#include "sweep.h"

#include "doubles/far.h"

#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5 };

#pragma weak far_alloc
#pragma weak far_free
#pragma weak far_write
#pragma weak far_read

bool sweep_has_far(void)
{
    return far_alloc != NULL;
}

static bool is_far(const guarded *g)
{
    return !g->shared && g->memory == SWEEP_FAR;
}

guarded guarded_new(size_t bytes, bool shared, sweep_memory memory)
{
    const size_t all = bytes + 2 * GUARD;
    guarded g = {.bytes = bytes, .shared = shared, .memory = memory};
    void *base = NULL;
    if (!shared)
        base = malloc(all);
    else if (ring_mem_alloc(&base, all) != RING_OK)
        base = NULL;
    if (base == NULL)
        abort();
    memset(base, GUARD_BYTE, all);
    g.view = (unsigned char *)base + GUARD;
    g.at = is_far(&g) ? (unsigned char *)far_alloc(all) + GUARD : g.view;
    if (!shared && memory == SWEEP_REGISTERED && ring_mem_register(base, all) != RING_OK)
        abort();
    return g;
}

void guarded_free(guarded *g)
{
    unsigned char *base = g->view - GUARD;
    if (is_far(g))
        far_free(g->at - GUARD);
    if (!g->shared && g->memory == SWEEP_REGISTERED && ring_mem_deregister(base) != RING_OK)
        abort();
    if (g->shared)
        ring_mem_free(base);
    else
        free(base);
}

bool guarded_intact(const guarded *g)
{
    for (size_t i = 1; i <= GUARD; i++)
        if (g->view[-(ptrdiff_t)i] != GUARD_BYTE || g->view[g->bytes + i - 1] != GUARD_BYTE)
            return false;
    return true;
}

void guarded_push(const guarded *g)
{
    if (is_far(g))
        far_write(g->at - GUARD, g->view - GUARD, g->bytes + 2 * GUARD);
}

void guarded_pull(const guarded *g)
{
    if (is_far(g))
        far_read(g->view - GUARD, g->at - GUARD, g->bytes + 2 * GUARD);
}

/* SPDX-License-Identifier: Apache-2.0
 * Everyone compares with rank 0. */
#include "same.h"

#include <stddef.h>
#include <string.h>

#include "agree.h"
#include "errors.h"

/* @return where the first line that differs begins, or -1. */
static ptrdiff_t find_difference(const char *mine, const char *first)
{
    ptrdiff_t line = 0;
    for (ptrdiff_t i = 0; mine[i] != '\0' || first[i] != '\0'; i++) {
        if (mine[i] != first[i])
            return line;
        if (mine[i] == '\n')
            line = i + 1;
    }
    return -1;
}

static ring_status compare(const char *mine, const char *first)
{
    const ptrdiff_t line = find_difference(mine, first);
    if (line < 0)
        return RING_OK;
    const char *here = mine + line + strcspn(mine + line, "=");
    const char *there = first + line + strcspn(first + line, "=");
    return train_fail(
        RING_ERR_CONFIG,
        "%.*s is %.*s, but %.*s on rank 0; give every rank the same file, options and data",
        (int)(here - mine - line), mine + line, (int)strcspn(here + 1, "\n"), here + 1,
        (int)strcspn(there + 1, "\n"), there + 1);
}

ring_status same_check(ring_comm *comm, const char mine[SAME_TEXT_MAX])
{
    char first[SAME_TEXT_MAX];
    memcpy(first, mine, sizeof first);
    RING_TRY(
        train_ring(comm, ring_broadcast(first, first, sizeof first, RING_UINT8, 0, comm, NULL)));
    return agree(comm, compare(mine, first));
}

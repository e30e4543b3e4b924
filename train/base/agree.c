/* SPDX-License-Identifier: Apache-2.0
 * Combines the status of all ranks in one small reduction, and broadcasts a text only after a
 * failure. Each rank compares its settings with those of rank 0. */
#include "agree.h"

#include <stddef.h>
#include <string.h>

#include "errors.h"

typedef struct failure {
    int32_t status;
    char text[TRAIN_ERROR_MAX];
} failure;

/* Collective: broadcasts the failure of @p rank. @param everywhere  all ranks failed */
static ring_status share_failure(ring_comm *comm, ring_status mine, int rank, int everywhere)
{
    failure shared = {.status = (int32_t)mine};
    strncpy(shared.text, train_error(), sizeof shared.text - 1);
    RING_TRY(train_ring(comm, ring_broadcast(&shared, &shared, sizeof shared, RING_UINT8, rank,
                                             comm, NULL)));
    if (everywhere)
        train_fail((ring_status)shared.status, "%s", shared.text);
    else
        train_fail((ring_status)shared.status, "rank %d: %s", rank, shared.text);
    train_error_share();
    return (ring_status)shared.status;
}

ring_status agree(ring_comm *comm, ring_status mine)
{
    const int32_t ranks = ring_comm_size(comm), rank = ring_comm_rank(comm);
    /* After the reduction: the lowest rank that failed, and 1 if all ranks failed. */
    int32_t lowest[2] = {mine == RING_OK ? ranks : rank, mine != RING_OK};
    RING_TRY(
        train_ring(comm, ring_all_reduce(lowest, lowest, 2, RING_INT32, RING_MIN, comm, NULL)));
    if (lowest[0] == ranks)
        return RING_OK;
    return share_failure(comm, mine, lowest[0], lowest[1]);
}

/* @return the offset of the first line that differs, or -1. */
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

static ring_status compare_settings(const char *mine, const char *first)
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

ring_status agree_on_settings(ring_comm *comm, const char mine[SETTINGS_TEXT_MAX])
{
    char first[SETTINGS_TEXT_MAX];
    memcpy(first, mine, sizeof first);
    RING_TRY(
        train_ring(comm, ring_broadcast(first, first, sizeof first, RING_UINT8, 0, comm, NULL)));
    return agree(comm, compare_settings(mine, first));
}

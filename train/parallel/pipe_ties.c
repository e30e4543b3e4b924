/* SPDX-License-Identifier: Apache-2.0
 * Finds the tied tensors whose layers are in different stages, and sums their gradients. */
#include "pipe_ties.h"

#include <stdlib.h>

#include "errors.h"
#include "precision.h"
#include "stages.h"

/* ---- Finding ------------------------------------------------------------------------------- */

pipe_tie *pipe_ties_of(const pipe_ties *ties, int tensor)
{
    for (int i = 0; i < ties->count; i++) {
        if (ties->list[i].tensor == tensor)
            return &ties->list[i];
    }
    return NULL;
}

static int stage_of_tensor(const train_model *whole, const int *starts, int tensor)
{
    for (int n = 0; n < whole->node_count; n++) {
        for (int t = 0; t < whole->nodes[n].use.tensor_count; t++) {
            if (whole->nodes[n].tensors[t] == tensor)
                return stages_of(starts, n);
        }
    }
    return 0; /* unreachable: every tensor belongs to a node */
}

/* Lists the original of the tied tensor @p tensor if the two are in different stages. */
static void find_tie(pipe_ties *ties, const train_model *whole, const int *starts, int tensor,
                     int stage)
{
    const int original = whole->tensors.list[tensor].tie;
    const int user = stage_of_tensor(whole, starts, tensor);
    const int owner = stage_of_tensor(whole, starts, original);
    if (user == owner)
        return;
    pipe_tie *tie = pipe_ties_of(ties, original);
    if (tie == NULL) {
        tie = &ties->list[ties->count++];
        *tie = (pipe_tie){.tensor = original, .count = whole->tensors.list[original].count};
    }
    tie->here = tie->here || user == stage || owner == stage;
    tie->copied = tie->here && owner != stage;
}

ring_status pipe_ties_find(pipe_ties *ties, const train_model *whole, const int *starts, int stage)
{
    const int tensors = whole->tensors.count;
    *ties = (pipe_ties){0};
    RING_TRY(train_alloc((void **)&ties->list, (size_t)tensors * sizeof *ties->list,
                         "shared parameters"));
    for (int t = 0; t < tensors; t++) {
        if (whole->tensors.list[t].tie >= 0)
            find_tie(ties, whole, starts, t, stage);
    }
    return RING_OK;
}

/* ---- Over the stages ----------------------------------------------------------------------- */

ring_status pipe_ties_join(pipe_ties *ties, int stage, ring_comm *pipe)
{
    for (int i = 0; i < ties->count; i++) {
        pipe_tie *tie = &ties->list[i];
        const int colour = tie->here ? 0 : RING_SPLIT_NONE;
        RING_TRY(train_ring(pipe, ring_comm_split(pipe, colour, stage, &tie->comm)));
    }
    return RING_OK;
}

void pipe_ties_leave(pipe_ties *ties)
{
    for (int i = 0; i < ties->count; i++)
        ring_comm_destroy(ties->list[i].comm);
    free(ties->list);
    *ties = (pipe_ties){0};
}

ring_status pipe_ties_reduce(const pipe_ties *ties, void *grads, ring_dtype type)
{
    for (int i = 0; i < ties->count; i++) {
        const pipe_tie *tie = &ties->list[i];
        unsigned char *grad = (unsigned char *)grads + tie->offset * precision_size(type);
        if (tie->here)
            RING_TRY(train_ring(tie->comm, ring_all_reduce(grad, grad, tie->count, type, RING_SUM,
                                                           tie->comm, NULL)));
    }
    return RING_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * pipe_ties: handles tied parameters whose layers are in different stages of a pipeline. Each of
 * these stages has a copy; the gradients are summed over the stages before each optimiser step, so
 * that the copies stay identical, bit for bit. Only the original counts in the norm of the
 * gradients.
 */
#ifndef TRAIN_PIPE_TIES_H
#define TRAIN_PIPE_TIES_H

#include "model.h"

/** A tensor that several stages have. */
typedef struct pipe_tie {
    int tensor;           /* number of the original in the whole network */
    bool here;            /* this stage has the original or a copy */
    bool copied;          /* this stage has a copy; an earlier stage has the original */
    size_t offset, count; /* offset in this stage's LAYOUT_FULL, and number of elements */
    ring_comm *comm;      /* of the stages that have the tensor; NULL if this stage does not */
} pipe_tie;

typedef struct pipe_ties {
    pipe_tie *list; /* [count], in the same order on all ranks */
    int count;
} pipe_ties;

/** Finds all tensors that several stages have.
 *  @param starts  [stages + 1] first node of each stage, and node_count
 *  @param stage  this rank's stage
 *  @return RING_OK or RING_ERR_MEMORY. End with pipe_ties_leave() whatever the result. */
ring_status pipe_ties_find(pipe_ties *ties, const train_model *whole, const int *starts, int stage);

/** Makes a communicator for each tensor. Collective over @p pipe, the stages of a pipeline. */
ring_status pipe_ties_join(pipe_ties *ties, int stage, ring_comm *pipe);
void pipe_ties_leave(pipe_ties *ties);

/** @return the tie of tensor @p tensor of the whole network, or NULL if only one stage has it. */
pipe_tie *pipe_ties_of(const pipe_ties *ties, int tensor);

/** Sums the gradients of all these tensors over the stages that have them. Collective over the
 * stages.
 *  @param[in,out] grads  this stage's gradients in LAYOUT_FULL, of type @p type. */
ring_status pipe_ties_reduce(const pipe_ties *ties, void *grads, ring_dtype type);

#endif

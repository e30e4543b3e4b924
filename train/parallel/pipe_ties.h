/* SPDX-License-Identifier: Apache-2.0
 *
 * pipe_ties: handles parameters that layers in several stages share. Each of these stages has a
 * copy; the gradients are summed over the stages before each optimiser step, so that the copies
 * stay identical, bit for bit. Only one copy counts in the norm.
 */
#ifndef TRAIN_PIPE_TIES_H
#define TRAIN_PIPE_TIES_H

#include "model.h"

/** A tensor that several stages have. */
typedef struct pipe_tie {
    int tensor;           /* of the whole network: the original */
    bool here;            /* this stage has it, */
    bool copied;          /* but the original is in an earlier one */
    size_t offset, count; /* elements before it in the flat buffers of this stage, and its own */
    ring_comm *comm;      /* of the stages that have it; NULL elsewhere */
} pipe_tie;

typedef struct pipe_ties {
    pipe_tie *list; /* [count], in the order of the table */
    int count;
} pipe_ties;

/** Finds them. @param starts  of the stages (stages.h). End with pipe_ties_leave() whatever the
 *  result. @param stage  this rank's. @return RING_OK or RING_ERR_MEMORY. */
ring_status pipe_ties_find(pipe_ties *ties, const train_model *whole, const int *starts, int stage);

/** Collective over the stages: a communicator for each tensor. */
ring_status pipe_ties_join(pipe_ties *ties, int stage, ring_comm *pipe);
void pipe_ties_leave(pipe_ties *ties);

/** @return the tie of a tensor of the whole, or NULL. */
pipe_tie *pipe_ties_of(const pipe_ties *ties, int tensor);

/** Collective over the stages. @param grads  the flat buffer of this stage, of @p type. */
ring_status pipe_ties_reduce(const pipe_ties *ties, void *grads, ring_dtype type);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * overflow: handles updates that are skipped because a gradient is not finite. It reports the first
 * rank and parameter with such a gradient, and adjusts the scale of the loss.
 */
#ifndef TRAIN_OVERFLOW_H
#define TRAIN_OVERFLOW_H

#include "loss_scaler.h"
#include "zero_memory.h"

enum { OVERFLOW_LINES = 2, OVERFLOW_TEXT_MAX = 256 };

typedef struct overflow_watch {
    loss_scaler scaler;
    bool skips;     /* else gradients that are not finite end the training */
    uint64_t first; /* the first element of this rank's gradients that is not finite; or NOWHERE */
    long skipped;   /* updates so far */
    char lines[OVERFLOW_LINES][OVERFLOW_TEXT_MAX]; /* about the last one */
} overflow_watch;

overflow_watch overflow_start(const precision_config *precision);

/** Looks at gradients of this rank that are about to travel. */
void overflow_look(overflow_watch *watch, const zero_memory *memory, int bucket);

/** An update was left in the middle: what was seen of it is nothing. */
void overflow_forget(overflow_watch *watch);

/** An update went well. */
void overflow_none(overflow_watch *watch);

/** The tensors of this rank's gradient elements. */
typedef struct overflow_tensors {
    const tensor_table *here;  /* as they lie here */
    const tensor_table *whole; /* of the network, as all ranks of @p comm number them */
    const int *locals;         /* [whole->count] originals: their tensor here, or -1; NULL: the
                                  tables are the same */
} overflow_tensors;

/** Collective: the gradients' norm is not finite, on every rank of @p comm. Moves the scale and
 *  fills the lines. @param update  its number, from 1.
 *  @return RING_OK, or on all ranks the error that ends the training. */
ring_status overflow_skip(overflow_watch *watch, const zero_memory *memory,
                          const overflow_tensors *tensors, ring_comm *comm, long update);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * overflow: handles updates that are skipped because a gradient is not finite. It reports the first
 * rank and parameter with such a gradient, and adjusts the loss scale (loss_scaler.h).
 */
#ifndef TRAIN_OVERFLOW_H
#define TRAIN_OVERFLOW_H

#include "loss_scaler.h"
#include "zero_memory.h"

enum { OVERFLOW_LINES = 2, OVERFLOW_TEXT_MAX = 256 };

typedef struct overflow_watch {
    loss_scaler scaler;
    bool skips;     /* false: a gradient that is not finite ends the training */
    uint64_t first; /* offset in LAYOUT_FULL of the first gradient that this rank has sent in this
                       update and that is not finite; UINT64_MAX: there is none */
    long skipped;   /* updates skipped so far */
    char lines[OVERFLOW_LINES][OVERFLOW_TEXT_MAX]; /* report about the latest skipped update */
} overflow_watch;

/** @return a watch with the initial loss scale, before the first update. */
overflow_watch overflow_start(const precision_config *precision);

/** Checks the gradients of a bucket that this rank is about to send. */
void overflow_look(overflow_watch *watch, const zero_memory *memory, int bucket);

/** Discards the results of overflow_look() after an update was abandoned. */
void overflow_forget(overflow_watch *watch);

/** Records an update without an overflow. */
void overflow_none(overflow_watch *watch);

/** Tables by which an element of this rank's gradients is found in the whole network. */
typedef struct overflow_tensors {
    const tensor_table *here;  /* tensors of this rank's stage */
    const tensor_table *whole; /* tensors of the whole network, the same on all ranks */
    const int *locals;         /* [whole->count] the tensor's number in here, or -1; NULL: the two
                                  tables are the same */
} overflow_tensors;

/** Skips an update because the norm of the gradients is not finite: adjusts the loss scale and
 *  writes watch->lines. Collective over @p comm. @param update  number of the update, from 1.
 *  @return RING_OK, or on all ranks an error that ends the training: the scale cannot be lowered.
 */
ring_status overflow_skip(overflow_watch *watch, const zero_memory *memory,
                          const overflow_tensors *tensors, ring_comm *comm, long update);

#endif

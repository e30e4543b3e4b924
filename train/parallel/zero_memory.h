/* SPDX-License-Identifier: Apache-2.0
 *
 * zero_memory: parameters and gradients of one rank, as much of them as the stage of ZeRO leaves
 * it, in memory that the ranks of a host share.
 *
 *     stage    parameters              gradients               optimiser's states
 *     0        all                     all                     all
 *     1        all                     all                     own
 *     2        all                     own, 2 live buckets     own
 *     3        own, 2 live buckets     own, 2 live buckets     own
 */
#ifndef TRAIN_ZERO_MEMORY_H
#define TRAIN_ZERO_MEMORY_H

#include "step_schedule.h"

typedef struct zero_memory {
    const train_partition *partition; /* borrowed */
    int stage, rank;
    float *params; /* [partition->elements]; stage 3: [partition->own] */
    float *grads;  /* [partition->elements]; from stage 2: [partition->own] */
    float *live_params[LIVE_BUCKETS], *live_grads[LIVE_BUCKETS]; /* [partition->largest] or NULL */
} zero_memory;

/** Allocates, and places the tensors of @p model there. Free with zero_memory_free() whatever the
 *  result. @return RING_OK, RING_ERR_MEMORY, or RING_ERR_CONFIG for tied tensors from stage 2 on,
 *  whose gradients would have to stay live. */
ring_status zero_memory_create(zero_memory *memory, train_model *model,
                               const train_partition *partition, int stage, int rank);
void zero_memory_free(zero_memory *memory);

/** Fills the parameters as model_init() does. */
ring_status zero_memory_init(zero_memory *memory, train_model *model, uint64_t seed);

/** @return the whole bucket, [count], where nodes read and write it. */
float *zero_params(const zero_memory *memory, int bucket);
float *zero_grads(const zero_memory *memory, int bucket);

/** @return this rank's part of the bucket, [part]. */
float *zero_own_params(const zero_memory *memory, int bucket);
float *zero_own_grads(const zero_memory *memory, int bucket);

/** @return bytes of parameters and gradients that are held all the time, and of live buckets. */
size_t zero_kept_bytes(const zero_memory *memory);
size_t zero_live_bytes(const zero_memory *memory);

#endif

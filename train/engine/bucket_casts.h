/* SPDX-License-Identifier: Apache-2.0
 *
 * bucket_casts: converts a bucket between the types in which it is stored, computed with and sent.
 * Where two of these types share one array there is nothing to do.
 */
#ifndef TRAIN_BUCKET_CASTS_H
#define TRAIN_BUCKET_CASTS_H

#include "zero_memory.h"

/** Parameters that have been gathered, to where nodes read them. */
void casts_load_params(const zero_memory *memory, int bucket);

/** Stages 0 and 1: gradients of a micro-batch, from where nodes write them to where they are kept.
 *  @param add  to those of earlier micro-batches */
void casts_keep_grads(const zero_memory *memory, int bucket, bool add);

/** Gradients to where they travel from; zeros behind the last tensor. */
void casts_send_grads(const zero_memory *memory, int bucket);

/** Reduced gradients that this rank owns, from @p reduced to where they are kept. */
void casts_take_grads(const zero_memory *memory, int bucket, const void *reduced, bool add);

/** @return @p count gradients in float32: @p kept itself, or a copy in the bucket's live place. */
const float *casts_float_grads(const zero_memory *memory, int bucket, const void *kept,
                               size_t count);

/** @return what the optimiser is to update, zero_owned_count() parameters in float32. */
float *casts_begin_step(const zero_memory *memory, int bucket);

/** @p count of them from @p begin on have been updated: parameters follow. */
void casts_end_step(const zero_memory *memory, int bucket, size_t begin, size_t count);

#endif

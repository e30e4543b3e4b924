/* SPDX-License-Identifier: Apache-2.0
 *
 * bucket_casts: converts a bucket between the types in which it is stored, computed with and sent.
 * Where two of these types share one array there is nothing to do.
 */
#ifndef TRAIN_BUCKET_CASTS_H
#define TRAIN_BUCKET_CASTS_H

#include "zero_memory.h"

/** Casts gathered parameters into the array that nodes read. */
void casts_load_params(const zero_memory *memory, int bucket);

/** In stages 0 and 1, moves the gradients of a micro-batch from the array that nodes write to the
 *  array that stores them.
 *  @param add  to those of earlier micro-batches */
void casts_keep_grads(const zero_memory *memory, int bucket, bool add);

/** Casts gradients into the array that is sent, with zeros after the last tensor. */
void casts_send_grads(const zero_memory *memory, int bucket);

/** Casts the reduced gradients that this rank owns from @p reduced into the array that stores them.
 */
void casts_take_grads(const zero_memory *memory, int bucket, const void *reduced, bool add);

/** @return @p count gradients in float32: @p kept itself, or a copy in the bucket's live place. */
const float *casts_float_grads(const zero_memory *memory, int bucket, const void *kept,
                               size_t count);

/** @return the zero_owned_count() parameters, in float32, that the optimiser will update. */
float *casts_begin_step(const zero_memory *memory, int bucket);

/** Casts @p count updated values, starting at @p begin, back to the parameters. */
void casts_end_step(const zero_memory *memory, int bucket, size_t begin, size_t count);

#endif

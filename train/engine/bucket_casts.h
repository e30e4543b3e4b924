/* SPDX-License-Identifier: Apache-2.0
 *
 * bucket_casts: converts the parameters and gradients of a bucket between the types in which they
 * are stored, computed with and sent. Each call does nothing if source and destination are the same
 * array (zero_memory.h).
 */
#ifndef TRAIN_BUCKET_CASTS_H
#define TRAIN_BUCKET_CASTS_H

#include "zero_memory.h"

/** Casts a bucket's gathered parameters into the float32 array that nodes read. */
void casts_load_params(const zero_memory *memory, int bucket);

/** In stages 0 and 1 of ZeRO, casts the gradients of a micro-batch from the array that nodes write
 *  to the array that stores them. Does nothing in stages 2 and 3.
 *  @param add  adds them to the gradients of earlier micro-batches instead of replacing these */
void casts_keep_grads(const zero_memory *memory, int bucket, bool add);

/** Casts a bucket's gradients into the array that is sent, and fills its padding with zeros. */
void casts_send_grads(const zero_memory *memory, int bucket);

/** Casts the reduced gradients that this rank owns from @p reduced into the array that stores them.
 *  @param add  adds them to the gradients of earlier micro-batches instead of replacing these */
void casts_take_grads(const zero_memory *memory, int bucket, const void *reduced, bool add);

/** @param kept  [count] stored gradients of the bucket
 *  @return the same gradients in float32: @p kept itself, or a copy in the bucket's live place. */
const float *casts_float_grads(const zero_memory *memory, int bucket, const void *kept,
                               size_t count);

/** @return [zero_owned_count()] the parameters that the optimiser updates, in float32. */
float *casts_begin_step(const zero_memory *memory, int bucket);

/** Casts elements @p begin to @p begin + @p count - 1 of the updated values back to the stored
 *  parameters. */
void casts_end_step(const zero_memory *memory, int bucket, size_t begin, size_t count);

#endif

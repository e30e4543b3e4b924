/* SPDX-License-Identifier: Apache-2.0
 *
 * conv: computes the convolutions of op conv2d with the maths library that the build chose. With
 * oneDNN, conv_* runs its primitives, which keep activations and weights in blocks of channels.
 * With OpenBLAS, conv_* calls conv_gemm_*, which copies windows into the columns of a matrix and
 * multiplies. The operands are those of an op_run.
 */
#ifndef TRAIN_CONV_H
#define TRAIN_CONV_H

#include "op.h"

/** @return bytes of scratch that a call needs. */
size_t conv_scratch_bytes(const op_use *use);

/** Prepares for batches of @p batch samples; does nothing if that size is prepared already. The
 * last four sizes are kept, so that batches in flight may have up to four different sizes.
 *  @return RING_OK, RING_ERR_MEMORY, RING_ERR_INTERNAL. */
ring_status conv_prepare(op_use *use, size_t batch);
void conv_release(op_use *use);

op_function conv_forward, conv_params, conv_inputs;

size_t conv_gemm_scratch_bytes(const op_use *use);
op_function conv_gemm_forward, conv_gemm_params, conv_gemm_inputs;

/** bias_grad[c] (+)= sum of out_grad[sample, c, place] over samples and places; used with every
 *  library. */
void conv_bias_gradient(const op_run *run);

#endif

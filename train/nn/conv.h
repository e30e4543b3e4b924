/* SPDX-License-Identifier: Apache-2.0
 *
 * conv: convolutions by a maths library, the seam of op conv2d. conv_* is what the build chose:
 * oneDNN's primitives, which keep activations and weights in blocks of channels, or with OpenBLAS
 * conv_gemm_*, which copies windows into the columns of a matrix and multiplies. The operands are
 * those of an op_run.
 */
#ifndef TRAIN_CONV_H
#define TRAIN_CONV_H

#include "op.h"

/** @return bytes of scratch that a call needs. */
size_t conv_scratch_bytes(const op_use *use);

/** Makes ready for batches of @p batch; does nothing where that is done. The last four sizes are
 *  kept, so batches in flight may have so many. @return RING_OK, RING_ERR_MEMORY,
 * RING_ERR_INTERNAL. */
ring_status conv_prepare(op_use *use, size_t batch);
void conv_release(op_use *use);

op_function conv_forward, conv_params, conv_inputs;

size_t conv_gemm_scratch_bytes(const op_use *use);
op_function conv_gemm_forward, conv_gemm_params, conv_gemm_inputs;

/** bias_grad[c] (+)= sum over samples and places of out_grad[., c, .]; for all libraries. */
void conv_bias_gradient(const op_run *run);

#endif

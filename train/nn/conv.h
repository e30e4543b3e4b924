/* SPDX-License-Identifier: Apache-2.0
 *
 * conv: computes the convolutions of op conv2d with the maths library that the build chose. With
 * oneDNN, the functions conv_* run its primitives, which keep activations and weights in blocks of
 * channels. With OpenBLAS, they call conv_gemm_*, which copies the windows into the columns of a
 * matrix and multiplies it by the weights. Operands and shapes are as in op.h and op_conv2d.c.
 */
#ifndef TRAIN_CONV_H
#define TRAIN_CONV_H

#include "op.h"

/** @return bytes of scratch memory that a pass needs. */
size_t conv_scratch_bytes(const op_use *use);

/** Prepares passes for batches of @p batch samples. The four most recently used sizes stay
 * prepared, so that batches in flight may have up to four different sizes.
 *  @return RING_OK, RING_ERR_MEMORY or RING_ERR_INTERNAL. */
ring_status conv_prepare(op_use *use, size_t batch);

/** Frees everything that conv_prepare() has made for this use. */
void conv_release(op_use *use);

/** The passes of the op (op_functions). Before each pass, conv_prepare() must have prepared its
 * batch size. */
op_function conv_forward, conv_params, conv_inputs;

/** The same by matrix products; needs no preparation. */
size_t conv_gemm_scratch_bytes(const op_use *use);
op_function conv_gemm_forward, conv_gemm_params, conv_gemm_inputs;

/** Computes the gradient of the bias, for both libraries: bias_grad[c] is the sum of
 *  out_grad[sample, c, place] over samples and places. It is added to the old gradient if
 * run->add[1] is set. */
void conv_bias_gradient(const op_run *run);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * kernels: computes on arrays in the host's memory, for the engine and the trainer. Each kernel is
 * compiled for several levels of SIMD instructions, which all compute the same bits. The best level
 * that the CPU supports is chosen once, at run time; RING_SIMD = auto | avx512 | avx2 | c
 * overrides the choice.
 */
#ifndef RING_KERNELS_H
#define RING_KERNELS_H

#include <ring/ring.h>
#include <stdbool.h>

/** Most inputs of one fold. */
#define KERNEL_MAX_INPUTS 64
/** Most outputs of one fold. */
#define KERNEL_MAX_OUTPUTS 64

/** An array operand of a fold: elements of the call's type, or of its accumulator type. */
typedef struct kernel_operand {
    void *data;       /* any alignment */
    bool accumulator; /* float32 for floats of 16 and 8 bits; ignored for other types */
    bool on_device;   /* in memory of the accelerator that folds; ignored by the host's kernels */
} kernel_operand;

/** Combines several arrays element by element and stores the result to one or more arrays:
 *      outs[k][i] = finish(ins[0][i] op ins[1][i] op … ),  for i < count, k < out_count
 *  An element's inputs are combined from left to right in the accumulator type, and all outputs are
 *  stored in the same pass. With one input this is a copy or a cast.
 *  @param outs    [out_count] arrays of count elements. An output may be the same array as an
 *                 input, but must not overlap an input at an offset.
 *  @param ins     [in_count] arrays of count elements.
 *  @param op      an operation that ring_op_serves() allows for the type. RING_AVG and
 *                 RING_PREMUL_SUM combine like RING_SUM.
 *  @param divisor if not 0, results are divided by it after the last input (RING_AVG): floats by a
 *                 true division in the accumulator type, integers towards zero.
 *  Outputs of the call's type are rounded once, to nearest even; an 8-bit float that would overflow
 *  becomes the largest finite number. MIN and MAX order -0 below +0, so that their bits do not
 *  depend on the order of the inputs. A NaN result has all bits set, except that a copy keeps the
 *  NaN's payload. Logical operations return 0 or 1, even for a single input.
 *  Cost: one pass that reads in_count arrays and writes out_count arrays. Large outputs are written
 *  with stores that bypass the caches. */
void kernel_fold(kernel_operand *outs, int out_count, const kernel_operand *ins, int in_count,
                 size_t count, ring_dtype dtype, ring_op op, int divisor);

/** @return true for integer types. */
static inline bool kernel_is_integer(ring_dtype dtype)
{
    return dtype <= RING_UINT64 || dtype == RING_INT16 || dtype == RING_UINT16;
}

/** @return true for RING_LAND, RING_LOR and RING_LXOR, which treat elements as truth values. */
static inline bool kernel_is_logical(ring_op op)
{
    return op >= RING_LAND && op <= RING_LXOR;
}

/** dst[i] = src[i] * by, for floats. @p by is rounded to the accumulator type, the product is
 *  computed in that type, and rounded to @p dtype if that is narrower. A NaN result has all bits
 *  set.
 *  @param dst  [count], may be @p src. */
void kernel_scale(void *dst, const void *src, size_t count, ring_dtype dtype, double by);

/** Copies memory. @p dst and @p src must be the same or not overlap. Large copies bypass the
 *  caches. */
void kernel_copy(void *dst, const void *src, size_t bytes);

/** @return the bytes of an element of the accumulator type of @p dtype. */
size_t kernel_acc_size(ring_dtype dtype);

/** Each of these casts dst[i] = src[i] for i < count, and rounds to nearest even. A NaN becomes a
 *  quiet NaN; a bfloat16 NaN has all bits set. */
void kernel_f16_to_f32(float *dst, const uint16_t *src, size_t count);
void kernel_f32_to_f16(uint16_t *dst, const float *src, size_t count);
void kernel_bf16_to_f32(float *dst, const uint16_t *src, size_t count);
void kernel_f32_to_bf16(uint16_t *dst, const float *src, size_t count);

/** dst[i] = src[i] / 255, rounded once, as PyTorch's ToTensor converts the bytes of an image. */
void kernel_bytes_to_unit(float *dst, const uint8_t *src, size_t count);

/* ---- Layers: float32 ---- */

/** out[i] = max(0, in[i]); a NaN stays NaN. @param out  [count], may be @p in. */
void kernel_relu(float *out, const float *in, size_t count);

/** in_delta[i] = out[i] > 0 ? out_delta[i] : 0. @param in_delta  may be @p out_delta. */
void kernel_relu_gradient(float *in_delta, const float *out_delta, const float *out, size_t count);

/** rows (count, width) += row (width): rows[i, j] += row[j]. */
void kernel_add_to_rows(float *rows, const float *row, size_t count, size_t width);

/** sum (width) += the sum of rows (count, width) over its rows, added in their order. */
void kernel_add_rows(float *sum, const float *rows, size_t count, size_t width);

/* ---- Optimisers. Each makes one pass over arrays of count elements, with PyTorch's arithmetic:
 * factors such as 1 - beta1 are computed in double and rounded once, and each operation on elements
 * is done in float32. ---- */

/** @return the sum of squares of x (count) in float64. The order of additions is the same in all
 *  levels: each of 32 partial sums adds every 32nd element, then the partial sums are added
 *  pairwise (l and l + 16, l and l + 8, …). */
double kernel_sum_squares(const float *x, size_t count);

/** torch.optim.SGD: g = scale*grad + weight_decay*p; with momentum: buf = first ? g :
 *  momentum*buf + (1-dampening)*g; g = nesterov ? g + momentum*buf : buf; p -= lr*g.
 *  @param buf  [count], may be NULL if momentum is 0. */
typedef struct kernel_sgd {
    double lr, momentum, dampening, weight_decay, scale;
    bool nesterov, first;
} kernel_sgd;
void kernel_sgd_step(float *p, const float *grad, float *buf, size_t count, const kernel_sgd *args);

/** torch.optim.AdamW (decoupled) or Adam (L2 in the gradient):
 *  g = scale*grad (+ weight_decay*p if not decoupled); decoupled: p *= 1 - lr*weight_decay;
 *  m += (1-beta1)*(g-m); v = beta2*v + (1-beta2)*g*g;
 *  p -= lr/(1-beta1^step) * m / (sqrt(v)/sqrt(1-beta2^step) + eps). step counts from 1. */
typedef struct kernel_adam {
    double lr, beta1, beta2, eps, weight_decay, scale;
    bool decoupled, bias_correction;
    long step;
} kernel_adam;
void kernel_adam_step(float *p, const float *grad, float *m, float *v, size_t count,
                      const kernel_adam *args);

/** Lion (Chen et al., 2023) as in DeepSpeed: g = scale*grad; p *= 1 - lr*weight_decay;
 *  p -= lr * sign(beta1*m + (1-beta1)*g), where sign(NaN) is 0; m = beta2*m + (1-beta2)*g. */
typedef struct kernel_lion {
    double lr, beta1, beta2, weight_decay, scale;
} kernel_lion;
void kernel_lion_step(float *p, const float *grad, float *m, size_t count, const kernel_lion *args);

/** torch.optim.Adagrad: g = scale*grad + weight_decay*p; sum += g*g;
 *  p -= lr/(1 + (step-1)*lr_decay) * g / (sqrt(sum) + eps). step counts from 1. */
typedef struct kernel_adagrad {
    double lr, lr_decay, eps, weight_decay, scale;
    long step;
} kernel_adagrad;
void kernel_adagrad_step(float *p, const float *grad, float *sum, size_t count,
                         const kernel_adagrad *args);

/* ---- Dispatch ---- */

/** Chooses the level: "auto", "avx512", "avx2" or "c". Any thread may call it at any time. If it is
 *  never called, the first use of a kernel chooses the level of RING_SIMD, or "auto" if that
 *  variable is unset or unusable. An unusable value is reported on stderr.
 *  @return false if the name is unknown or the CPU lacks the level. */
bool kernels_select(const char *level);
/** @return the level in use. */
const char *kernels_level(void);

#endif

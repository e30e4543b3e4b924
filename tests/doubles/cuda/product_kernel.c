/* SPDX-License-Identifier: Apache-2.0
 * The body of the kernel. */
#include "product_kernel.h"

#include "emulated_kernel.h"

#include <stdlib.h>
#include <string.h>

enum { LANES = 16, GARBAGE = 1 << 16 /* bytes of the workspace that are overwritten */ };

/* @return the dot product of x (count) and y (count), whose elements are y_step apart. */
static float dot(const float *x, const float *y, uint64_t y_step, uint64_t count)
{
    float lanes[LANES] = {0}, sum = 0;
    uint64_t k = 0;
    for (; k + LANES <= count; k += LANES)
        for (int l = 0; l < LANES; l++)
            lanes[l] += x[k + l] * y[(k + l) * y_step];
    for (; k < count; k++)
        sum += x[k] * y[k * y_step];
    for (int l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

/* @return @p x with 10 bits of the mantissa, the nearest such number. */
static float to_tf32(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x1000) & ~UINT32_C(0x1fff);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* sums (rows) = first (rows, inner) * y (inner), whose elements are @p y_step apart. */
static void multiply_column(const product_args *p, const float *first, const float *y,
                            uint64_t y_step, float *sums)
{
    const product_operand *x = &p->first;
    if (x->column == 1 && !p->tf32) {
        for (uint64_t i = 0; i < p->rows; i++)
            sums[i] = dot(first + i * x->row, y, y_step, p->inner);
        return;
    }
    memset(sums, 0, p->rows * sizeof *sums);
    for (uint64_t k = 0; k < p->inner; k++)
        for (uint64_t i = 0; i < p->rows; i++) {
            const float a = first[i * x->row + k * x->column], b = y[k * y_step];
            sums[i] += p->tf32 ? to_tf32(a) * to_tf32(b) : a * b;
        }
}

static void multiply(const void *args)
{
    const product_args *p = args;
    float *sums = malloc(p->rows * sizeof *sums);
    for (uint64_t c = fiber_block_index(); c < p->batch * p->columns; c += fiber_block_count()) {
        const uint64_t b = c / p->columns, j = c % p->columns;
        float *out = p->result + b * p->result_step + j * p->result_column;
        multiply_column(p, p->first.at + b * p->first.step,
                        p->second.at + b * p->second.step + j * p->second.column, p->second.row,
                        sums);
        for (uint64_t i = 0; i < p->rows; i++) {
            sums[i] *= p->alpha;
            if (p->beta != 0) /* else old values are not read: they may be NaN */
                sums[i] += p->beta * out[i];
            out[i] = p->bias != NULL ? sums[i] + p->bias[i] : sums[i];
            if (p->relu)
                out[i] = out[i] > 0 ? out[i] : 0;
        }
    }
    if (fiber_block_index() == 0)
        memset(p->workspace, 0xff, p->workspace_bytes < GARBAGE ? p->workspace_bytes : GARBAGE);
    free(sums);
}

__attribute__((constructor)) static void register_product(void)
{
    static emulated_kernel kernel = {.name = "fake_product",
                                     .body = multiply,
                                     .args_bytes = sizeof(product_args)};
    emulated_kernel_register(&kernel);
}

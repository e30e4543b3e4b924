/* SPDX-License-Identifier: Apache-2.0
 * The body of the kernel. */
#include "product_kernel.h"

#include "emulated_kernel.h"

static float element(const product_operand *x, uint64_t b, uint64_t i, uint64_t j)
{
    return x->at[b * x->step + i * x->row + j * x->column];
}

static void multiply(const void *args)
{
    const product_args *p = args;
    for (uint64_t c = fiber_block_index(); c < p->batch * p->columns; c += fiber_block_count()) {
        const uint64_t b = c / p->columns, j = c % p->columns;
        float *out = p->result + b * p->result_step + j * p->result_column;
        for (uint64_t i = 0; i < p->rows; i++) {
            float sum = 0;
            for (uint64_t k = 0; k < p->inner; k++)
                sum += element(&p->first, b, i, k) * element(&p->second, b, k, j);
            sum *= p->alpha;
            if (p->beta != 0) /* else old values are not read: they may be NaN */
                sum += p->beta * out[i];
            out[i] = p->bias != NULL ? sum + p->bias[i] : sum;
        }
    }
}

__attribute__((constructor)) static void register_product(void)
{
    static emulated_kernel kernel = {.name = "fake_product",
                                     .body = multiply,
                                     .args_bytes = sizeof(product_args)};
    emulated_kernel_register(&kernel);
}

/* SPDX-License-Identifier: Apache-2.0
 * Converts arrays with the kernels, in blocks that stay in the cache. */
#include "element_casts.h"

#include <kernels.h>
#include <string.h>

#include "precision.h"

enum { BLOCK = 2048 };

void elements_to_float(float *to, const void *from, ring_dtype type, size_t count)
{
    if (type == RING_FLOAT16)
        kernel_f16_to_f32(to, from, count);
    else if (type == RING_BFLOAT16)
        kernel_bf16_to_f32(to, from, count);
    else
        memcpy(to, from, count * sizeof *to);
}

void elements_from_float(void *to, ring_dtype type, const float *from, size_t count)
{
    if (type == RING_FLOAT16)
        kernel_f32_to_f16(to, from, count);
    else if (type == RING_BFLOAT16)
        kernel_f32_to_bf16(to, from, count);
    else
        memcpy(to, from, count * sizeof *from);
}

void *element_of(const void *array, ring_dtype type, size_t element)
{
    return (unsigned char *)(uintptr_t)array + element * precision_size(type);
}

void cast_elements(void *to, ring_dtype to_type, const void *from, ring_dtype from_type,
                   size_t count)
{
    float block[BLOCK];
    if (from_type == RING_FLOAT32) {
        elements_from_float(to, to_type, from, count);
        return;
    }
    if (to_type == RING_FLOAT32) {
        elements_to_float(to, from, from_type, count);
        return;
    }
    for (size_t i = 0; i < count; i += BLOCK) {
        const size_t many = count - i < BLOCK ? count - i : BLOCK;
        elements_to_float(block, element_of(from, from_type, i), from_type, many);
        elements_from_float(element_of(to, to_type, i), to_type, block, many);
    }
}

void add_elements(void *to, ring_dtype to_type, const void *from, ring_dtype from_type,
                  size_t count)
{
    float sum[BLOCK], more[BLOCK];
    for (size_t i = 0; i < count; i += BLOCK) {
        const size_t many = count - i < BLOCK ? count - i : BLOCK;
        elements_to_float(sum, element_of(to, to_type, i), to_type, many);
        elements_to_float(more, element_of(from, from_type, i), from_type, many);
        for (size_t k = 0; k < many; k++)
            sum[k] += more[k];
        elements_from_float(element_of(to, to_type, i), to_type, sum, many);
    }
}

void round_elements(float *values, ring_dtype type, size_t count)
{
    uint16_t block[BLOCK];
    for (size_t i = 0; i < count; i += BLOCK) {
        const size_t many = count - i < BLOCK ? count - i : BLOCK;
        elements_from_float(block, type, values + i, many);
        elements_to_float(values + i, block, type, many);
    }
}

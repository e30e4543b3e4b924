/* SPDX-License-Identifier: Apache-2.0
 *
 * names: has a table with the names of each type, and finds types and operations by name.
 */
#include "names.h"

#include <string.h>

/* nccl-tests' name of each type, then other names. ring_dtype_name() is accepted, too. */
static const char *const dtype_words[RING_DTYPE_COUNT][3] = {
    [RING_INT8] = {"int8", "char", "i8"},
    [RING_UINT8] = {"uint8", "byte", "u8"},
    [RING_INT32] = {"int32", "int", "i32"},
    [RING_UINT32] = {"uint32", "uint", "u32"},
    [RING_INT64] = {"int64", "long", "i64"},
    [RING_UINT64] = {"uint64", "ulong", "u64"},
    [RING_FLOAT16] = {"half", "fp16", "f16"},
    [RING_FLOAT32] = {"float", "fp32", "f32"},
    [RING_FLOAT64] = {"double", "fp64", "f64"},
    [RING_BFLOAT16] = {"bfloat16", "bf16", "bf16"},
    [RING_FLOAT8_E4M3] = {"f8e4m3", "e4m3", "e4m3fn"},
    [RING_FLOAT8_E5M2] = {"f8e5m2", "e5m2", "e5m2"},
    [RING_INT16] = {"int16", "short", "i16"},
    [RING_UINT16] = {"uint16", "ushort", "u16"},
};

static bool is_dtype_name(const char *name, ring_dtype dtype)
{
    for (size_t i = 0; i < 3; i++)
        if (strcmp(name, dtype_words[dtype][i]) == 0)
            return true;
    return strcmp(name, ring_dtype_name(dtype)) == 0;
}

bool perf_dtype_parse(const char *name, int *dtype)
{
    *dtype = PERF_ALL;
    if (strcmp(name, "all") == 0)
        return true;
    for (int i = 0; i < RING_DTYPE_COUNT; i++)
        if (is_dtype_name(name, (ring_dtype)i)) {
            *dtype = i;
            return true;
        }
    return false;
}

bool perf_op_parse(const char *name, int *op)
{
    *op = PERF_ALL;
    if (strcmp(name, "all") == 0)
        return true;
    if (strcmp(name, "mulsum") == 0) { /* nccl-tests' name */
        *op = RING_PREMUL_SUM;
        return true;
    }
    for (int i = 0; i < RING_OP_COUNT; i++)
        if (strcmp(name, ring_op_name((ring_op)i)) == 0) {
            *op = i;
            return true;
        }
    return false;
}

const char *perf_dtype_label(ring_dtype dtype)
{
    return dtype_words[dtype][0];
}

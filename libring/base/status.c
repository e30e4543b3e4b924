/* SPDX-License-Identifier: Apache-2.0
 *
 * Keeps each thread's error text, and implements the public functions that describe statuses, data
 * types and operations. Tables hold their names and sizes.
 */
#include "base.h"

#include "numbers.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { FAIL_TEXT_MAX = 1024 };

static _Thread_local char fail_buffer[FAIL_TEXT_MAX];

ring_status fail(ring_status status, const char *format, ...)
{
    const int saved_errno = errno;
    char text[FAIL_TEXT_MAX]; /* a copy, since the arguments may point into fail_buffer */
    NUMBERS_AS_IN_C;
    va_list args;
    va_start(args, format);
    errno = saved_errno;
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    text_make_printable(text, sizeof text); /* it may quote a file or a variable */
    memcpy(fail_buffer, text, sizeof text);
    return status;
}

const char *fail_text(void)
{
    return fail_buffer;
}

void fail_clear(void)
{
    fail_buffer[0] = '\0';
}

const char *ring_status_string(ring_status status)
{
    switch (status) {
#define STATUS_CASE(name, value, text) \
    case name: \
        return text;
        RING_STATUS_LIST(STATUS_CASE)
#undef STATUS_CASE
    }
    return "unknown status";
}

int ring_version(void)
{
    return RING_VERSION_CODE;
}

static const struct {
    const char *name;
    size_t size;
} dtypes[RING_DTYPE_COUNT] = {
    [RING_INT8] = {"int8", 1},
    [RING_UINT8] = {"uint8", 1},
    [RING_INT32] = {"int32", 4},
    [RING_UINT32] = {"uint32", 4},
    [RING_INT64] = {"int64", 8},
    [RING_UINT64] = {"uint64", 8},
    [RING_FLOAT16] = {"float16", 2},
    [RING_FLOAT32] = {"float32", 4},
    [RING_FLOAT64] = {"float64", 8},
    [RING_BFLOAT16] = {"bfloat16", 2},
    [RING_FLOAT8_E4M3] = {"float8_e4m3", 1},
    [RING_FLOAT8_E5M2] = {"float8_e5m2", 1},
    [RING_INT16] = {"int16", 2},
    [RING_UINT16] = {"uint16", 2},
};

static const char *const ops[RING_OP_COUNT] = {
    [RING_SUM] = "sum", [RING_PROD] = "prod", [RING_MAX] = "max",
    [RING_MIN] = "min", [RING_AVG] = "avg",   [RING_BAND] = "band",
    [RING_BOR] = "bor", [RING_BXOR] = "bxor", [RING_LAND] = "land",
    [RING_LOR] = "lor", [RING_LXOR] = "lxor", [RING_PREMUL_SUM] = "premul_sum",
};

static bool dtype_known(ring_dtype dtype)
{
    return (unsigned)dtype < RING_DTYPE_COUNT;
}

size_t ring_dtype_size(ring_dtype dtype)
{
    return dtype_known(dtype) ? dtypes[dtype].size : 0;
}

const char *ring_dtype_name(ring_dtype dtype)
{
    return dtype_known(dtype) ? dtypes[dtype].name : "?";
}

const char *ring_op_name(ring_op op)
{
    return (unsigned)op < RING_OP_COUNT ? ops[op] : "?";
}

/* Bitwise and logical operations serve integers only, and RING_PREMUL_SUM, which multiplies by a
 * factor, serves floats only. */
int ring_op_serves(ring_op op, ring_dtype dtype)
{
    const bool is_float = dtype >= RING_FLOAT16 && dtype <= RING_FLOAT8_E5M2;
    return dtype_known(dtype) && (unsigned)op < RING_OP_COUNT &&
           (op < RING_BAND || is_float == (op == RING_PREMUL_SUM));
}

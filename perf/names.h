/* SPDX-License-Identifier: Apache-2.0
 *
 * names: parses the names of types and operations, which may be nccl-tests' or libring's. Tables
 * have nccl-tests' names, and JSON has libring's.
 */
#ifndef PERF_NAMES_H
#define PERF_NAMES_H

#include <ring/ring.h>
#include <stdbool.h>

/** The value "all" of options for types, operations and roots. */
#define PERF_ALL (-1)

/** @param[out] dtype, op  the value with that name; PERF_ALL for "all".
 *  @return false if the name is unknown. */
bool perf_dtype_parse(const char *name, int *dtype);
bool perf_op_parse(const char *name, int *op);

static inline bool perf_is_float(ring_dtype dtype)
{
    return dtype >= RING_FLOAT16 && dtype <= RING_FLOAT8_E5M2;
}

/** @return nccl-tests' name: "float", "half", … */
const char *perf_dtype_label(ring_dtype dtype);

#endif

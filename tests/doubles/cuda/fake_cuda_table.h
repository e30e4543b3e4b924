/* SPDX-License-Identifier: Apache-2.0
 * fake_cuda_table: what the double alone has, for tests. With another libcuda the test is skipped.
 */
#ifndef TEST_DOUBLES_FAKE_CUDA_TABLE_H
#define TEST_DOUBLES_FAKE_CUDA_TABLE_H

#include "cuda_table.h"
#include "fake_cuda.h"

#define FAKE_CUDA_FUNCTIONS(ROW) \
    ROW(alloc) \
    ROW(free) \
    ROW(at) \
    ROW(read) \
    ROW(write) \
    ROW(set) \
    ROW(fail) \
    ROW(fail_nth) \
    ROW(fail_nth_of) \
    ROW(last_failed) \
    ROW(last_kernel) \
    ROW(longest_chain) \
    ROW(counters) \
    ROW(permit) \
    ROW(census_begin) \
    ROW(census_end) \
    ROW(census_sum)

typedef struct fake_cuda_table {
#define ROW(name) __typeof__(&fake_cuda_##name) name;
    FAKE_CUDA_FUNCTIONS(ROW)
#undef ROW
} fake_cuda_table;

static inline fake_cuda_table fake_cuda_functions(void)
{
    fake_cuda_table t;
#define ROW(name) cuda_take("fake_cuda_" #name, &t.name);
    FAKE_CUDA_FUNCTIONS(ROW)
#undef ROW
    return t;
}

#endif

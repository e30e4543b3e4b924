/* SPDX-License-Identifier: Apache-2.0
 *
 * expected: computes every rank's input and the expected output of a collective from (rank, index,
 * repetition) alone, without code of the library. Inputs are chosen so that sums and products are
 * exact in any combining order, so a difference of one bit is an error.
 */
#ifndef PERF_ORACLE_H
#define PERF_ORACLE_H

#include <ring/ring.h>

typedef struct perf_oracle {
    ring_dtype dtype;
    ring_op op;
    int ranks;
    uint32_t repetition; /* each number gives other values */
} perf_oracle;

/** @return the factor of a rank's elements in RING_PREMUL_SUM. */
double perf_oracle_factor(int rank);

/** Writes elements [first, first + count) of @p rank's input to @p out. */
void perf_oracle_fill(const perf_oracle *oracle, int rank, size_t first, size_t count, void *out);

/** @return how many of the @p count elements at @p data differ from the input of @p rank, which is
 *  compared from element @p first on. */
size_t perf_oracle_check_copy(const perf_oracle *oracle, int rank, size_t first, size_t count,
                              const void *data);

/** @return how many of the @p count elements at @p data differ from the combined inputs of all
 *  ranks, which are compared from element @p first on. */
size_t perf_oracle_check_reduced(const perf_oracle *oracle, size_t first, size_t count,
                                 const void *data);

#endif

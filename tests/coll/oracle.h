/* SPDX-License-Identifier: Apache-2.0
 *
 * Independent oracles: what a reduction must give, computed element by element with scalar
 * code that shares nothing with the library.
 *  - exact data: sums, products and averages are exact in every type, so 0 ulp in any order;
 *  - random data: the specified order recomputed serially, so bitwise; and against long
 *    double within ku / (1 - ku) * sum |x| for k roundings (Higham, section 4.2).
 * Inputs repeat after ORACLE_PERIOD elements, a prime, so that long vectors are checked in
 * whole at little cost, and what is displaced by a chunk or a segment shows.
 */
#ifndef RING_TEST_ORACLE_H
#define RING_TEST_ORACLE_H

#include <ring/ring.h>
#include <stdbool.h>

typedef enum oracle_data { ORACLE_EXACT, ORACLE_RANDOM } oracle_data;
/** Combining order: round the ring from the block's next rank, or by rank. */
typedef enum oracle_order { ORACLE_RING_ORDER, ORACLE_RANK_ORDER } oracle_order;

typedef struct oracle_case {
    ring_dtype dtype;
    ring_op op;
    int ranks;
    oracle_data data;
    oracle_order order;
    unsigned seed;
    size_t total;       /* elements of the reduced vector */
    size_t block_count; /* elements of a rank's block in it, 0: cut evenly */
} oracle_case;

enum { ORACLE_PERIOD = 1021 };

/** Writes @p rank's input elements [first, first + count). */
void oracle_fill(const oracle_case *c, int rank, void *out, size_t first, size_t count);

/** Compares @p got with elements [first, first + count) of a rank's input, or of the reduction
 *  of all ranks' inputs, bit by bit. @return true if equal; else prints the first difference. */
bool oracle_is_input(const oracle_case *c, int rank, const void *got, size_t first, size_t count);
bool oracle_is_reduced(const oracle_case *c, const void *got, size_t first, size_t count);

#endif

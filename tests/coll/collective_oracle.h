/* SPDX-License-Identifier: Apache-2.0
 *
 * Independent oracles: what a reduction must give, computed element by element with scalar
 * code that shares nothing with the library.
 *  - exact data: sums, products and averages are exact in every type, so 0 ulp in any order;
 *  - random data: the specified order recomputed serially, so bitwise; and against long
 *    double within ku / (1 - ku) * sum |x| for k roundings (Higham, section 4.2).
 * Inputs repeat after ORACLE_PERIOD elements, a prime, so that long vectors are checked in
 * whole at little cost, and data that is displaced by a chunk or a segment is detected.
 */
#ifndef RING_TEST_ORACLE_H
#define RING_TEST_ORACLE_H

#include <ring/ring.h>
#include <stdbool.h>

typedef enum oracle_data { ORACLE_EXACT, ORACLE_RANDOM } oracle_data;
typedef struct oracle_case oracle_case;
/** How element @p i is combined, in postfix: a rank pushes its element, ORACLE_COMBINE combines the
 *  two topmost (left op right). @param[out] postfix  [2 * ranks - 1].
 *  @return where elements begin that may be combined in another order. */
typedef size_t (*oracle_order)(const oracle_case *c, size_t i, int *postfix);
enum { ORACLE_COMBINE = -1, ORACLE_MOST_RANKS = 64 };

/** Left to right by rank; left to right round the ring from the block's next rank. */
size_t oracle_rank_order(const oracle_case *c, size_t i, int *postfix);
size_t oracle_ring_order(const oracle_case *c, size_t i, int *postfix);

struct oracle_case {
    ring_dtype dtype;
    ring_op op;
    int ranks;
    oracle_data data;
    oracle_order order;
    const void *context; /* of order */
    unsigned seed;
    size_t total;       /* elements of the reduced vector */
    size_t block_count; /* elements of a rank's block in it, 0: cut evenly */
};

enum { ORACLE_PERIOD = 1021 };

bool oracle_is_float(ring_dtype dtype);
/** @return the factor of a rank's elements in RING_PREMUL_SUM; 1 in other operations. */
double oracle_factor(const oracle_case *c, int rank);

/** Writes @p rank's input elements [first, first + count). */
void oracle_fill(const oracle_case *c, int rank, void *out, size_t first, size_t count);

/** Compares @p got with elements [first, first + count) of a rank's input, or of the reduction
 *  of all ranks' inputs, bit by bit. @return true if equal; else prints the first difference. */
bool oracle_is_input(const oracle_case *c, int rank, const void *got, size_t first, size_t count);
bool oracle_is_reduced(const oracle_case *c, const void *got, size_t first, size_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * terms: what a chunk holds while plans are run on symbols: the data of one rank, a sum of
 * two terms, or a finished term. Equal terms have equal numbers, so two ranks hold the same
 * bits exactly if they hold the same number. Folding left to right one
 * by one, or all in one pass, gives the same term, as it gives the same bits.
 */
#ifndef RING_PLAN_TERMS_H
#define RING_PLAN_TERMS_H

#include "plan.h"

enum { TERM_NONE = -1 };

typedef enum term_kind { TERM_LEAF, TERM_SUM, TERM_FINISHED } term_kind;

typedef struct term {
    term_kind kind;
    int32_t left, right; /* leaf: rank, chunk; sum: terms; finished: term, 0 */
    int32_t chunk;
    uint64_t ranks;      /* bit r: rank r contributes */
} term;

typedef struct term_table {
    term *nodes;
    int32_t count, cap;
    int32_t *slots; /* hash table of node numbers, a power of two, TERM_NONE if empty */
    size_t slot_count;
} term_table;

void terms_free(term_table *t);

/** Finds or makes a term. @return its number, TERM_NONE if out of memory. */
int32_t term_leaf(term_table *t, int32_t rank, int32_t chunk);
int32_t term_sum(term_table *t, int32_t left, int32_t right);
int32_t term_finished(term_table *t, int32_t id);

/** Writes the ranks of a sum in combining order, ignoring finish.
 *  @param[out] order  room for 64. @return how many; -1 if it was not folded left to right. */
int term_order(const term_table *t, int32_t id, int32_t *order);

#endif

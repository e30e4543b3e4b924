/* SPDX-License-Identifier: Apache-2.0
 *
 * symbols: represents the contents of a chunk while plans are simulated: the data of one rank, a
 * sum of two symbols, or a finished symbol. Equal symbols have equal numbers, so two ranks have the
 * same bits if and only if they have the same number. Folding from left to right gives the same
 * symbol in one pass as in several, just as it gives the same bits.
 */
#ifndef RING_PLAN_SYMBOLS_H
#define RING_PLAN_SYMBOLS_H

#include "plan.h"

enum { SYMBOL_NONE = -1 };

typedef enum symbol_kind { SYMBOL_LEAF, SYMBOL_SUM, SYMBOL_FINISHED } symbol_kind;

typedef struct symbol {
    symbol_kind kind;
    int32_t left, right; /* leaf: rank, chunk; sum: symbols; finished: symbol, 0 */
    int32_t chunk;
    uint64_t ranks; /* bit r is set if rank r contributes */
} symbol;

typedef struct symbol_table {
    symbol *nodes;
    int32_t count, cap;
    int32_t *slots; /* hash table of node numbers, a power of two, SYMBOL_NONE if empty */
    size_t slot_count;
} symbol_table;

void symbols_free(symbol_table *t);

/** Find or create a symbol. @return its number; SYMBOL_NONE if out of memory. */
int32_t symbol_leaf(symbol_table *t, int32_t rank, int32_t chunk);
int32_t symbol_sum(symbol_table *t, int32_t left, int32_t right);
int32_t symbol_finished(symbol_table *t, int32_t id);

/** Writes the combining order of a symbol in postfix, ignoring finish: ranks, and -1 for a sum.
 *  @param[out] order  room for 2 * 64 - 1. @return the length. */
int symbol_postfix(const symbol_table *t, int32_t id, int32_t *order);

#endif

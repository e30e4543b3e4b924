/* SPDX-License-Identifier: Apache-2.0
 * Stores each symbol only once (hash consing), so that equal symbols have equal numbers. */
#include "symbols.h"

#include <stdlib.h>
#include <string.h>

void symbols_free(symbol_table *t)
{
    free(t->nodes);
    free(t->slots);
    memset(t, 0, sizeof *t);
}

static size_t hash(symbol_kind kind, int32_t left, int32_t right)
{
    uint64_t h = (uint64_t)kind << 62 ^ (uint64_t)(uint32_t)left << 31 ^ (uint32_t)right;
    h *= 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 29);
}

/* @return the slot of a symbol, or the free slot where it would be stored. */
static int32_t *slot_of(const symbol_table *t, symbol_kind kind, int32_t left, int32_t right)
{
    size_t i = hash(kind, left, right);
    for (;; i++) {
        int32_t *slot = &t->slots[i & (t->slot_count - 1)];
        if (*slot == SYMBOL_NONE)
            return slot;
        const symbol *v = &t->nodes[*slot];
        if (v->kind == kind && v->left == left && v->right == right)
            return slot;
    }
}

static bool grow(symbol_table *t)
{
    const int32_t cap = t->cap > 0 ? 2 * t->cap : 256;
    const size_t slot_count = 2 * (size_t)cap;
    symbol *nodes = realloc(t->nodes, (size_t)cap * sizeof *nodes);
    if (nodes == NULL)
        return false;
    t->nodes = nodes;
    int32_t *slots = malloc(slot_count * sizeof *slots);
    if (slots == NULL)
        return false;
    free(t->slots);
    t->slots = memset(slots, 0xff, slot_count * sizeof *slots); /* SYMBOL_NONE */
    t->slot_count = slot_count;
    t->cap = cap;
    for (int32_t i = 0; i < t->count; i++)
        *slot_of(t, nodes[i].kind, nodes[i].left, nodes[i].right) = i;
    return true;
}

static int32_t intern(symbol_table *t, const symbol *v)
{
    int32_t *slot = t->cap > 0 ? slot_of(t, v->kind, v->left, v->right) : NULL;
    if (slot != NULL && *slot != SYMBOL_NONE)
        return *slot;
    if (t->count == t->cap) {
        if (!grow(t))
            return SYMBOL_NONE;
        slot = slot_of(t, v->kind, v->left, v->right);
    }
    t->nodes[t->count] = *v;
    *slot = t->count;
    return t->count++;
}

int32_t symbol_leaf(symbol_table *t, int32_t rank, int32_t chunk)
{
    return intern(t, &(symbol){.kind = SYMBOL_LEAF,
                               .left = rank,
                               .right = chunk,
                               .chunk = chunk,
                               .ranks = UINT64_C(1) << rank});
}

int32_t symbol_sum(symbol_table *t, int32_t left, int32_t right)
{
    return intern(t, &(symbol){.kind = SYMBOL_SUM,
                               .left = left,
                               .right = right,
                               .chunk = t->nodes[left].chunk,
                               .ranks = t->nodes[left].ranks | t->nodes[right].ranks});
}

int32_t symbol_finished(symbol_table *t, int32_t id)
{
    return intern(t, &(symbol){.kind = SYMBOL_FINISHED,
                               .left = id,
                               .chunk = t->nodes[id].chunk,
                               .ranks = t->nodes[id].ranks});
}

int symbol_postfix(const symbol_table *t, int32_t id, int32_t *order)
{
    const symbol *v = &t->nodes[id];
    if (v->kind == SYMBOL_FINISHED)
        v = &t->nodes[v->left];
    if (v->kind == SYMBOL_LEAF) {
        order[0] = v->left;
        return 1;
    }
    int count = symbol_postfix(t, v->left, order);
    count += symbol_postfix(t, v->right, order + count);
    order[count] = -1;
    return count + 1;
}

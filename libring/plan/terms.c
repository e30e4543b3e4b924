/* SPDX-License-Identifier: Apache-2.0
 * Terms, each kept once (hash consing). */
#include "terms.h"

#include <stdlib.h>
#include <string.h>

void terms_free(term_table *t)
{
    free(t->nodes);
    free(t->slots);
    memset(t, 0, sizeof *t);
}

static size_t hash(term_kind kind, int32_t left, int32_t right)
{
    uint64_t h = (uint64_t)kind << 62 ^ (uint64_t)(uint32_t)left << 31 ^ (uint32_t)right;
    h *= 0x9e3779b97f4a7c15u;
    return (size_t)(h ^ h >> 29);
}

static bool same(const term *v, term_kind kind, int32_t left, int32_t right)
{
    return v->kind == kind && v->left == left && v->right == right;
}

/* The slot of a term: where it is, or the free one where it would be. */
static int32_t *slot_of(const term_table *t, term_kind kind, int32_t left, int32_t right)
{
    size_t i = hash(kind, left, right);
    for (;; i++) {
        int32_t *slot = &t->slots[i & (t->slot_count - 1)];
        if (*slot == TERM_NONE || same(&t->nodes[*slot], kind, left, right))
            return slot;
    }
}

static bool grow(term_table *t)
{
    const int32_t cap = t->cap > 0 ? 2 * t->cap : 256;
    const size_t slot_count = 2 * (size_t)cap;
    term *nodes = realloc(t->nodes, (size_t)cap * sizeof *nodes);
    if (nodes == NULL)
        return false;
    t->nodes = nodes;
    int32_t *slots = malloc(slot_count * sizeof *slots);
    if (slots == NULL)
        return false;
    free(t->slots);
    t->slots = memset(slots, 0xff, slot_count * sizeof *slots); /* TERM_NONE */
    t->slot_count = slot_count;
    t->cap = cap;
    for (int32_t i = 0; i < t->count; i++)
        *slot_of(t, nodes[i].kind, nodes[i].left, nodes[i].right) = i;
    return true;
}

static int32_t intern(term_table *t, const term *v)
{
    int32_t *slot = t->cap > 0 ? slot_of(t, v->kind, v->left, v->right) : NULL;
    if (slot != NULL && *slot != TERM_NONE)
        return *slot;
    if (t->count == t->cap) {
        if (!grow(t))
            return TERM_NONE;
        slot = slot_of(t, v->kind, v->left, v->right);
    }
    t->nodes[t->count] = *v;
    *slot = t->count;
    return t->count++;
}

int32_t term_leaf(term_table *t, int32_t rank, int32_t chunk)
{
    return intern(t, &(term){.kind = TERM_LEAF, .left = rank, .right = chunk, .chunk = chunk,
                              .ranks = UINT64_C(1) << rank});
}

int32_t term_sum(term_table *t, int32_t left, int32_t right)
{
    return intern(t, &(term){.kind = TERM_SUM, .left = left, .right = right,
                              .chunk = t->nodes[left].chunk,
                              .ranks = t->nodes[left].ranks | t->nodes[right].ranks});
}

int32_t term_finished(term_table *t, int32_t id)
{
    return intern(t, &(term){.kind = TERM_FINISHED, .left = id, .chunk = t->nodes[id].chunk,
                              .ranks = t->nodes[id].ranks});
}

int term_order(const term_table *t, int32_t id, int32_t *order)
{
    const term *v = &t->nodes[id];
    if (v->kind == TERM_FINISHED)
        v = &t->nodes[v->left];
    const int count = __builtin_popcountll(v->ranks);
    int at = count - 1;
    for (; v->kind == TERM_SUM; v = &t->nodes[v->left], at--) {
        const term *right = &t->nodes[v->right];
        if (right->kind != TERM_LEAF || at == 0)
            return -1;
        order[at] = right->left;
    }
    if (v->kind != TERM_LEAF || at != 0)
        return -1;
    order[0] = v->left;
    return count;
}

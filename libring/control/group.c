/* SPDX-License-Identifier: Apache-2.0
 *
 * Finds the communicators of a membership and creates new ones. The kept notes are delivered to a
 * new communicator, so that a loss that is known already ends it at once.
 */
#include "group.h"

#include "bulletin.h"

#include <stdlib.h>

int group_rank(const group *g, int member_rank)
{
    if (g->ranks == NULL)
        return member_rank;
    for (int r = 0; r < g->world.size; r++)
        if (g->ranks[r] == member_rank)
            return r;
    return -1;
}

group *group_find(const membership *m, uint64_t id)
{
    group *g = m->groups;
    while (g != NULL && g->world.id != id)
        g = g->next;
    return g;
}

bool group_was_left(const membership *m, uint64_t id)
{
    const size_t kept = min_size(m->left_groups, GROUPS_LEFT_KEPT);
    for (size_t i = 0; i < kept; i++)
        if (m->left_ids[i] == id)
            return true;
    return false;
}

ring_status control_verdict(const control_world *world)
{
    return (ring_status)atomic_load_explicit(&group_at(world)->verdict, memory_order_acquire);
}

const char *control_text(const control_world *world)
{
    return control_verdict(world) != RING_OK ? group_at(world)->text : "";
}

bool control_left(const control_world *world, int peer)
{
    const group *g = group_at(world);
    return atomic_load_explicit(&g->member->ranks[group_member_rank(g, peer)].left,
                                memory_order_acquire);
}

/* ---- Deriving ---------------------------------------------------------------------- */

/* Checks the list of ranks. @param[out] rank  the index of this rank in the list. */
static ring_status find_own(const control_world *of, const int *ranks, int count, int *rank)
{
    *rank = -1;
    for (int r = 0; r < count; r++) {
        if (ranks[r] < 0 || ranks[r] >= of->size)
            return fail(RING_ERR_ARGUMENT, "rank %d is not in this communicator of %d ranks",
                        ranks[r], of->size);
        if (ranks[r] == of->rank)
            *rank = r;
    }
    return *rank >= 0
               ? RING_OK
               : fail(RING_ERR_ARGUMENT,
                      "rank %d cannot make a communicator that does not include it", of->rank);
}

void group_free(group *g)
{
    free(g->votes);
    free(g->decision);
    free((int *)g->ranks);
    free(g->world.cards);
    free(g);
}

static group *allocate(int count)
{
    const size_t size = (size_t)count;
    group *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->world.cards = calloc(size, sizeof *g->world.cards);
    g->votes = calloc(size, sizeof *g->votes);
    g->ranks = calloc(size, sizeof *g->ranks);
    if (g->world.cards != NULL && g->votes != NULL && g->ranks != NULL)
        return g;
    group_free(g);
    return NULL;
}

static group *new_group(const group *of, uint64_t id, const int *ranks, int count, int rank)
{
    group *g = allocate(count);
    if (g == NULL)
        return NULL;
    control_card *cards = g->world.cards;
    int *numbers = (int *)g->ranks;
    g->world = of->world;
    g->world.id = id;
    g->world.rank = rank;
    g->world.size = count;
    g->world.cards = cards;
    g->member = of->member;
    g->round = 1;
    g->decide_by = g->accuse_at = CONTROL_NEVER;
    for (int r = 0; r < count; r++) {
        cards[r] = of->world.cards[ranks[r]];
        numbers[r] = group_member_rank(of, ranks[r]);
    }
    return g;
}

/* Adds the communicator to its membership, under the lock. */
static ring_status enter(membership *m, group *g)
{
    if (group_find(m, g->world.id) != NULL)
        return fail(RING_ERR_USAGE, "communicator %#llx already exists",
                    (unsigned long long)g->world.id);
    g->next = m->groups;
    m->groups = g;
    m->references++;
    bulletin_replay(g, BULLETIN_LASTING);
    return RING_OK;
}

ring_status control_derive(control_world *of, uint64_t id, const int *ranks, int count,
                           control_world **out)
{
    int rank;
    *out = NULL;
    RING_TRY(find_own(of, ranks, count, &rank));
    group *g = new_group(group_of(of), id, ranks, count, rank);
    if (g == NULL)
        return fail(RING_ERR_MEMORY, "no memory to make a communicator of %d rank%s", count,
                    plural(count));
    control_lock();
    const ring_status status = enter(g->member, g);
    control_unlock();
    if (status == RING_OK)
        *out = &g->world;
    else
        group_free(g);
    return status;
}

uint64_t group_new_id(membership *m)
{
    return (uint64_t)m->world.rank << 32 | ++m->ids_given;
}

uint64_t control_new_id(control_world *world)
{
    control_lock();
    const uint64_t id = group_new_id(group_of(world)->member);
    control_unlock();
    return id;
}

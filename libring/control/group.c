/* SPDX-License-Identifier: Apache-2.0
 * Making communicators of a membership, and ending them one by one. */
#include "group.h"

#include "bulletin.h"
#include "data_sockets.h"
#include "departure.h"
#include "roll.h"
#include "shrink.h"

#include <sodium.h>
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

/* The text is complete before the verdict is stored with release order, and never changes
 * afterwards. */
void group_decide(group *g, ring_status status, const char *text)
{
    if (group_is_decided(g))
        return;
    text_format(g->text, sizeof g->text, "%s", text);
    atomic_store_explicit(&g->verdict, (int)status, memory_order_release);
    data_sockets_end(g);
    if (g->wake != NULL)
        g->wake(g->wake_context);
}

/* This rank's own statements do not go to its sink. */
static void hear_statement(const group *g, const control_message *note)
{
    const int rank = group_rank(g, note->rank);
    if (g->on_statement != NULL && rank >= 0 && rank != g->world.rank)
        g->on_statement(g->on_statement_context, rank, &note->body.statement);
}

void group_hear(group *g, const control_message *note)
{
    const bool own = note->communicator == g->world.id;
    if (note->kind == CONTROL_LOST && group_rank(g, note->rank) >= 0)
        group_decide(g, RING_ERR_PEER, note->body.text);
    else if (note->kind == CONTROL_VERDICT && own)
        group_decide(g, (ring_status)note->status, note->body.text);
    else if (note->kind == CONTROL_STATEMENT && own)
        hear_statement(g, note);
    else if (note->kind == CONTROL_ROLL && own)
        roll_hear(g->member, note); /* replayed rounds from before it was made here */
    else if (own)
        shrink_hear(g, note);
}

/* ---- Deriving ---------------------------------------------------------------------- */

/* @param[out] rank  this rank's index among them. */
static ring_status find_own(const control_world *of, const int *ranks, int count, int *rank)
{
    *rank = -1;
    for (int r = 0; r < count; r++) {
        if (ranks[r] < 0 || ranks[r] >= of->size)
            return fail(RING_ERR_ARGUMENT, "rank %d of %d: no rank of the communicator", ranks[r],
                        of->size);
        if (ranks[r] == of->rank)
            *rank = r;
    }
    return *rank >= 0 ? RING_OK
                      : fail(RING_ERR_ARGUMENT, "rank %d makes a communicator that it is not in",
                             of->rank);
}

static void free_derived(group *g)
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
    free_derived(g);
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

/* Locked. */
static ring_status enter(membership *m, group *g)
{
    if (group_find(m, g->world.id) != NULL)
        return fail(RING_ERR_USAGE, "communicator %#llx is there already",
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
        return fail(RING_ERR_MEMORY, "a communicator of %d ranks", count);
    control_lock();
    const ring_status status = enter(g->member, g);
    control_unlock();
    if (status == RING_OK)
        *out = &g->world;
    else
        free_derived(g);
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

/* ---- From start to end ------------------------------------------------------------- */

void control_start(control_world *world, void (*wake)(void *), void *context)
{
    group *g = group_of(world);
    membership *m = g->member;
    control_lock();
    g->wake = wake;
    g->wake_context = context;
    if (g == &m->all) {
        m->started = true;
        m->state = STATE_RUNNING;
        sodium_memzero(m->job->key, sizeof m->job->key); /* no rank joins any more */
        if (m->served)
            membership_due(m, 0); /* neighbours may have left already */
    }
    if (group_is_decided(g))
        wake(context);
    control_unlock();
}

bool group_was_left(const membership *m, uint64_t id)
{
    const size_t kept = min_size(m->left_groups, GROUPS_LEFT_KEPT);
    for (size_t i = 0; i < kept; i++)
        if (m->left_ids[i] == id)
            return true;
    return false;
}

/* Locked. @return true if it was the last one. */
static bool detach(group *g)
{
    membership *m = g->member;
    group **at = &m->groups;
    while (*at != NULL && *at != g)
        at = &(*at)->next;
    if (*at == NULL)
        return false; /* it was left before */
    *at = g->next;
    m->left_ids[m->left_groups++ % GROUPS_LEFT_KEPT] = g->world.id;
    g->wake = NULL;
    g->sink = NULL;
    g->on_statement = NULL;
    data_sockets_end(g);
    roll_forget(m, g->world.id);
    if (m->groups != NULL)
        shrink_resign(g);
    return m->groups == NULL;
}

void control_leave(control_world *world)
{
    group *g = group_of(world);
    control_lock();
    const bool last = detach(g);
    control_unlock();
    if (last)
        departure_run(g->member);
}

void control_free(control_world *world)
{
    if (world == NULL)
        return;
    group *g = group_of(world);
    membership *m = g->member;
    control_leave(world);
    control_lock();
    const bool last = --m->references == 0;
    control_unlock();
    if (g != &m->all)
        free_derived(g);
    if (last)
        membership_free(m);
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
    return atomic_load_explicit(&g->member->left[group_member_rank(g, peer)], memory_order_acquire);
}

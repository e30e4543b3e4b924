/* SPDX-License-Identifier: Apache-2.0
 * Plans do not depend on counts, so each is built once; the cache keeps those that were used last,
 * within the bounds of comm.h. A program keeps no pointer to its plan. */
#include "comm.h"

#include <stdlib.h>

typedef struct cached_plan {
    plan_collective collective;
    int root;
    tuner_choice choice;
    plan *plan;
    size_t bytes;
    struct cached_plan *next;
} cached_plan;

struct plan_cache {
    cached_plan *first; /* latest used first */
};

ring_status plans_new(struct plan_cache **out)
{
    *out = calloc(1, sizeof **out);
    return *out != NULL ? RING_OK : fail(RING_ERR_MEMORY, "creating the plan cache");
}

static void free_from(cached_plan *entry)
{
    for (cached_plan *next; entry != NULL; entry = next) {
        next = entry->next;
        plan_free(entry->plan);
        free(entry);
    }
}

void plans_free(struct plan_cache *cache)
{
    if (cache != NULL)
        free_from(cache->first);
    free(cache);
}

size_t plans_kept(const struct plan_cache *cache, size_t *bytes)
{
    size_t count = 0;
    *bytes = 0;
    for (const cached_plan *entry = cache->first; entry != NULL; entry = entry->next, count++)
        *bytes += entry->bytes;
    return count;
}

static void send_to(plan *p, int peer, bool eager)
{
    if (eager) {
        plan_send_eager(p, PLAN_SRC, 0, 1, peer, PLAN_DST);
        return;
    }
    plan_send(p, PLAN_SRC, 0, 1, peer, PLAN_DST);
    plan_wait(p, peer, 0);
}

/* A rank with itself: the receiver copies, from the sender's buffer. */
static void add_pair_steps(plan *p, int peer, bool eager)
{
    if (p->collective == PLAN_SEND && peer != p->rank)
        send_to(p, peer, eager);
    else if (peer != p->rank)
        plan_recv(p, peer, PLAN_DST, 0, 1);
    else if (p->collective == PLAN_RECV)
        plan_copy(p, PLAN_SRC, 0, PLAN_DST, 0, 1);
}

static plan *pair_plan(const ring_comm *comm, plan_collective collective, int peer, bool eager)
{
    plan *p = plan_new(collective, "pair", comm->rank, comm->ranks, peer, 1);
    if (p == NULL)
        return NULL;
    add_pair_steps(p, peer, eager);
    if (plan_seal(p) == RING_OK)
        return p;
    plan_free(p);
    return NULL;
}

/* The collective of the plan: v-forms use that of the even one. */
static plan_collective collective_of(const call_signature *call)
{
    return plan_collective_planned(call->collective);
}

static int root_of(const call_signature *call)
{
    const plan_facts *facts = plan_facts_of(call->collective);
    return facts->rooted || facts->pairwise ? call->root : 0;
}

static plan *build(const ring_comm *comm, const call_signature *call, const tuner_choice *choice)
{
    if (choice->algorithm == NULL)
        return pair_plan(comm, call->collective, call->root, choice->eager);
    const algo_call wanted = {.collective = collective_of(call),
                              .world = &comm->plan_world,
                              .rank = comm->rank,
                              .root = root_of(call),
                              .chunks = choice->chunks};
    return choice->algorithm->build(&wanted);
}

static size_t memory_of(const plan *p)
{
    return sizeof *p + (size_t)p->step_cap * sizeof *p->steps +
           (size_t)p->loc_cap * sizeof *p->locs + (size_t)p->block_cap * sizeof *p->blocks +
           (size_t)p->peer_count * sizeof *p->peers;
}

/* The latest plan stays, also if it is longer than the bound. */
static void drop_oldest(struct plan_cache *cache)
{
    size_t count = 1, bytes = cache->first->bytes;
    cached_plan *last = cache->first;
    while (last->next != NULL && count < PLANS_MOST &&
           bytes + last->next->bytes <= PLANS_MOST_BYTES) {
        last = last->next;
        bytes += last->bytes;
        count++;
    }
    free_from(last->next);
    last->next = NULL;
}

static bool matches(const cached_plan *entry, const call_signature *call,
                    const tuner_choice *choice)
{
    return entry->collective == collective_of(call) && entry->root == root_of(call) &&
           entry->choice.algorithm == choice->algorithm && entry->choice.chunks == choice->chunks &&
           entry->choice.eager == choice->eager;
}

static cached_plan *find(struct plan_cache *cache, const call_signature *call,
                         const tuner_choice *choice)
{
    for (cached_plan **at = &cache->first; *at != NULL; at = &(*at)->next) {
        cached_plan *entry = *at;
        if (!matches(entry, call, choice))
            continue;
        *at = entry->next;
        entry->next = cache->first;
        cache->first = entry;
        return entry;
    }
    return NULL;
}

ring_status plans_get(struct plan_cache *cache, const ring_comm *comm, const call_signature *call,
                      const tuner_choice *choice, const plan **out)
{
    cached_plan *entry = find(cache, call, choice);
    if (entry == NULL) {
        entry = calloc(1, sizeof *entry);
        plan *p = entry != NULL ? build(comm, call, choice) : NULL;
        if (p == NULL) {
            free(entry);
            return RING_ERR_MEMORY; /* the builder has set fail_text() */
        }
        *entry = (cached_plan){.collective = collective_of(call),
                               .root = root_of(call),
                               .choice = *choice,
                               .plan = p,
                               .bytes = memory_of(p),
                               .next = cache->first};
        cache->first = entry;
        drop_oldest(cache);
    }
    *out = entry->plan;
    return RING_OK;
}

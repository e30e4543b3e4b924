/* SPDX-License-Identifier: Apache-2.0
 * Builds plans with the algorithm that the tuner chose, or directly for a send or recv between two
 * ranks. */
#include "shared_plan.h"

#include <stdlib.h>

/* If the peer is this rank itself, the recv copies from the sender's buffer and the send has no
 * steps. */
static void add_pair_steps(plan *p, int peer, bool eager)
{
    if (peer == p->rank) {
        if (p->collective == PLAN_RECV)
            plan_copy(p, PLAN_SRC, 0, PLAN_DST, 0, 1);
    } else if (p->collective != PLAN_SEND) {
        plan_recv(p, peer, PLAN_DST, 0, 1);
    } else if (eager) {
        plan_send_eager(p, PLAN_SRC, 0, 1, peer, PLAN_DST);
    } else {
        plan_send(p, PLAN_SRC, 0, 1, peer, PLAN_DST);
        plan_wait(p, peer, 0);
    }
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

static int root_of(const call_signature *call)
{
    const plan_facts *facts = plan_facts_of(call->collective);
    return facts->rooted || facts->pairwise ? call->root : 0;
}

static plan *build(const ring_comm *comm, const call_signature *call, const tuner_choice *choice)
{
    if (choice->algorithm == NULL)
        return pair_plan(comm, call->collective, call->root, choice->eager);
    const algo_call wanted = {.collective = plan_collective_planned(call->collective),
                              .world = &comm->plan_world,
                              .rank = comm->rank,
                              .root = root_of(call),
                              .chunks = choice->chunks};
    return choice->algorithm->build(&wanted);
}

ring_status plans_build(const ring_comm *comm, const call_signature *call,
                        const tuner_choice *choice, shared_plan **out)
{
    shared_plan *shared = calloc(1, sizeof *shared);
    plan *p = shared != NULL ? build(comm, call, choice) : NULL;
    if (p == NULL) {
        free(shared);
        return RING_ERR_MEMORY; /* the builder has set fail_text() */
    }
    *shared = (shared_plan){.plan = p,
                            .root = root_of(call),
                            .choice = *choice,
                            .bytes = sizeof *p + (size_t)p->step_cap * sizeof *p->steps +
                                     (size_t)p->loc_cap * sizeof *p->locs +
                                     (size_t)p->block_cap * sizeof *p->blocks +
                                     (size_t)p->peer_count * sizeof *p->peers,
                            .holders = 1};
    *out = shared;
    return RING_OK;
}

bool plans_serve(const shared_plan *p, const call_signature *call, const tuner_choice *choice)
{
    return p->plan->collective == plan_collective_planned(call->collective) &&
           p->root == root_of(call) && p->choice.algorithm == choice->algorithm &&
           p->choice.chunks == choice->chunks && p->choice.eager == choice->eager;
}

void plans_drop(shared_plan *p)
{
    if (p == NULL || --p->holders > 0)
        return;
    plan_free(p->plan);
    free(p);
}

/* SPDX-License-Identifier: Apache-2.0
 * What algorithms share. */
#include "parts.h"

int algo_neighbour(const plan *p, int steps)
{
    const int rank = (p->rank + steps) % p->ranks;
    return rank < 0 ? rank + p->ranks : rank;
}

/* One rank: a fold of one input applies what finishing means; other collectives copy. */
static void write_alone(plan *p)
{
    if (p->collective == PLAN_BARRIER)
        return;
    plan_repeat(p, p->chunks, 1);
    if (!plan_reduces(p->collective)) {
        plan_copy(p, PLAN_SRC, 0, PLAN_DST, 0);
        return;
    }
    plan_fold(p, true, PLAN_WIRE_DATA, PLAN_WIRE_DATA);
    plan_in(p, p->rank, PLAN_SRC, 0);
    plan_out(p, p->rank, PLAN_DST, 0);
}

static ring_status check_call(const algo *self, const algo_call *call)
{
    if (!self->supports(call->collective))
        return fail(RING_ERR_UNSUPPORTED, "%s does no %s", self->name,
                    plan_collective_name(call->collective));
    if (call->ranks < 1 || call->rank < 0 || call->rank >= call->ranks || call->root < 0 ||
        call->root >= call->ranks)
        return fail(RING_ERR_ARGUMENT, "%s: no plan for rank %d, root %d of %d ranks", self->name,
                    call->rank, call->root, call->ranks);
    const int unit = self->chunks(call->collective, call->ranks, 0);
    if (call->chunks < 1 || call->chunks % unit != 0)
        return fail(RING_ERR_ARGUMENT, "%s cuts %s into multiples of %d chunks, not into %d",
                    self->name, plan_collective_name(call->collective), unit, call->chunks);
    return RING_OK;
}

plan *algo_build(const char *name, algo_call call, void (*write)(plan *p))
{
    if (check_call(algo_find(name), &call) != RING_OK)
        return NULL;
    plan *p = plan_new(call.collective, name, call.rank, call.ranks, call.root, call.chunks);
    if (p == NULL)
        return NULL;
    if (call.ranks == 1)
        write_alone(p);
    else
        write(p);
    if (plan_seal(p) == RING_OK)
        return p;
    plan_free(p);
    return NULL;
}

static void forward_from_root(plan *p, int next)
{
    plan_repeat(p, p->chunks, 1);
    plan_send(p, PLAN_SRC, 0, next, PLAN_DST);
    plan_repeat(p, p->chunks, 1);
    plan_copy(p, PLAN_SRC, 0, PLAN_DST, 0);
    plan_repeat(p, 1, 0);
    plan_wait_ack(p, next);
}

void algo_forward(plan *p)
{
    const int previous = algo_neighbour(p, -1), next = algo_neighbour(p, 1);
    p->fill = p->ranks - 2;
    if (p->rank == p->root) {
        forward_from_root(p, next);
        return;
    }
    plan_repeat(p, p->chunks, 1);
    plan_recv(p, previous, PLAN_DST, 0);
    if (next != p->root)
        plan_send(p, PLAN_DST, 0, next, PLAN_DST);
    plan_repeat(p, 1, 0);
    plan_ack(p, previous);
    if (next != p->root)
        plan_wait_ack(p, next);
}

/* SPDX-License-Identifier: Apache-2.0
 * The address of an operand of the present op, and the number of its message. */
#include "operand.h"

static uintptr_t base_of(const work *w, const operand *at)
{
    if (at->buffer == PLAN_SCRATCH)
        return (uintptr_t)w->scratch;
    const int side = at->buffer == PLAN_SRC ? PLAN_SRC : PLAN_DST;
    if (w->lists[side] != NULL)
        return w->lists[side][at->block];
    return side == PLAN_SRC ? (uintptr_t)w->src : (uintptr_t)w->dst;
}

/* Scratch memory holds the present slice alone. */
char *operand_address(const work *w, const program_op *o, const operand *at)
{
    const size_t skip = at->buffer == PLAN_SCRATCH && w->program->slices > 1
                            ? 0
                            : program_skip(w->program, o, w->slice);
    const size_t first = at->offset + (skip + w->position) * at->width;
    ring_assert(at->peer == OPERAND_LOCAL && w->position <= program_count(w->program, o, w->slice));
    ring_assert(at->buffer != PLAN_DST || first <= w->dst_bytes);
    ring_assert(at->buffer != PLAN_SCRATCH || first <= w->program->scratch);
    return (char *)(base_of(w, at) + first);
}

uint64_t operand_message(const work *w, const operand *at, bool out)
{
    const work_peer *peer = &w->peers[at->peer];
    const program_peer *counts = &w->program->peers[at->peer];
    const uint64_t base = out ? peer->out_base : peer->in_base;
    return base + (uint64_t)w->runs * (out ? counts->sends : counts->recvs) + at->message;
}

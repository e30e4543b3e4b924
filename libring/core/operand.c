/* SPDX-License-Identifier: Apache-2.0
 * Computes the address of an operand at the work's current position, and the number of the message
 * that carries it. */
#include "operand.h"

/* Scratch memory holds only the current slice, so its operands skip no earlier slices. */
char *operand_address(const work *w, const program_op *o, const operand *at)
{
    const size_t skip = at->buffer == PLAN_SCRATCH && w->program->slices > 1
                            ? 0
                            : program_skip(w->program, o, w->step.slice);
    const size_t first = at->offset + (skip + w->step.position) * at->width;
    ring_assert(at->peer == OPERAND_LOCAL &&
                w->step.position <= program_count(w->program, o, w->step.slice));
    ring_assert(at->buffer != PLAN_DST || first <= w->buffers.dst_bytes);
    ring_assert(at->buffer != PLAN_SCRATCH || first <= w->program->scratch);
    const int side = at->buffer == PLAN_SRC ? PLAN_SRC : PLAN_DST;
    uintptr_t base = side == PLAN_SRC ? (uintptr_t)w->buffers.src : (uintptr_t)w->buffers.dst;
    if (at->buffer == PLAN_SCRATCH)
        base = (uintptr_t)w->scratch;
    else if (w->bases[side] != NULL)
        base = w->bases[side][at->block];
    return (char *)(base + first);
}

uint64_t operand_message(const work *w, const operand *at, bool out)
{
    const work_peer *peer = &w->peers[at->peer];
    const program_peer *counts = &w->program->peers[at->peer];
    const uint64_t base = out ? peer->out_base : peer->in_base;
    return base + (uint64_t)w->step.runs * (out ? counts->sends : counts->recvs) + at->message;
}

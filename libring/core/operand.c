/* SPDX-License-Identifier: Apache-2.0
 * Where an operand of the present op lies, and which message it is. */
#include "comm.h"

static const char *base_of(const work *w, const operand *at)
{
    switch (at->buffer) {
    case PLAN_SRC:
        return w->src;
    case PLAN_SCRATCH:
        return w->scratch;
    default:
        return w->dst;
    }
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
    return (char *)(uintptr_t)base_of(w, at) + first;
}

uint64_t operand_message(const work *w, const operand *at, bool out)
{
    const work_peer *peer = &w->peers[at->peer];
    const program_peer *counts = &w->program->peers[at->peer];
    const uint64_t base = out ? peer->out_base : peer->in_base;
    return base + (uint64_t)w->runs * (out ? counts->sends : counts->recvs) + at->message;
}

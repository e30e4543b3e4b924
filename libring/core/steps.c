/* SPDX-License-Identifier: Apache-2.0
 *
 * Runs the ops of a program except the fold (folds.c). An op runs as far as it can without
 * blocking; then the work waits on one channel. Ops use only buffers and channels, so they do not
 * depend on the algorithm or the transport.
 */
#include "steps.h"

#include "channel_in.h"
#include "channel_out.h"
#include "folds.h"
#include "kernels.h"
#include "operand.h"
#include "references.h"

#include <string.h>

/* ---- Send ----------------------------------------------------------------------- */

static posted message_of(work *w, const program_op *o, const operand *from, const operand *to)
{
    posted m = operand_posted(w, to, program_count(w->program, o, w->step.slice), from->width);
    m.by = work_memory_of(w, from->buffer);
    m.data = operand_address(w, o, from);
    return m;
}

static ring_status send_step(work *w, const program_op *o)
{
    const operand *from = &w->program->operands[o->first], *to = from + 1;
    posted message = message_of(w, o, from, to);
    message.placed = to->buffer == PLAN_DST;
    return channel_post(&message);
}

/* An eager send copies its message, so its step is complete when the whole message is in frames. */
static ring_status eager_step(work *w, const program_op *o)
{
    const operand *from = &w->program->operands[o->first], *to = from + 1;
    posted *m = &w->step.relay;
    if (w->step.position == 0 && !m->asked) {
        *m = message_of(w, o, from, to);
        m->by_value = m->copy = true;
    }
    const ring_status status = channel_send(m);
    w->step.position = m->done > 0; /* sending has begun */
    return status == RING_IN_PROGRESS
               ? channel_await(w, w->peers[to->peer].on, WAIT_ROOM, m->number)
               : status;
}

/* ---- Receive ---------------------------------------------------------------------- */

static ring_status take_frame(work *w, channel *c, const arrival *in, char *to, size_t left)
{
    if (in->frame->flags & FRAME_STORED || in->bytes == 0)
        return RING_OK;
    if (in->frame->flags & FRAME_REF && in->payload == NULL)
        return channel_fetch(w, c, to, in->frame->ext.src_ref, in->bytes);
    if (in->frame->flags & FRAME_REF) {
        kernel_copy(to, in->payload, left);
        return RING_OK;
    }
    if ((in->frame->flags & FRAME_LONG) == 0) {
        memcpy(to, in->payload, in->bytes);
        return RING_OK;
    }
    const ring_status status = c->link->transport->pull(c->link, to);
    return status == RING_IN_PROGRESS ? channel_await(w, c, WAIT_FRAME, c->received) : status;
}

/* Makes bytes that an adapter wrote to an accelerator's memory visible to the accelerator. */
static ring_status flush_to(const accelerator *by, const arrival *in, char *at)
{
    const bool written = in->whole && in->bytes > 0 && by != NULL && by->flush != NULL;
    const ring_status status = written ? by->flush(by, at, in->bytes) : RING_OK;
    return status == RING_OK
               ? RING_OK
               : fail(status, "the accelerator (%s) could not flush received data: %s", by->name,
                      fail_text());
}

static ring_status receive_frame(work *w, const program_op *o, size_t total)
{
    const operand *from = &w->program->operands[o->first], *to = from + 1;
    char *at = operand_address(w, o, to);
    arrival in;
    RING_TRY(channel_peek(w, from, total, &in));
    RING_TRY(take_frame(w, w->peers[from->peer].on, &in, at, total * to->width));
    RING_TRY(flush_to(work_memory_of(w, to->buffer), &in, at));
    w->step.position += in.bytes / to->width;
    channel_consume(w, from->peer, &in, w->step.position == total);
    return RING_OK;
}

/* Peeks at the first frame. @param[out] whole  true if the message is not carried in frames. */
RING_RARE static ring_status find_whole(work *w, const operand *from, size_t total, bool *whole)
{
    arrival in;
    RING_TRY(channel_peek(w, from, total, &in));
    *whole = in.whole;
    return RING_OK;
}

/* Decides whether fold_run() receives the message, as a fold with one input. It does if the
 * accelerator must copy the message, because it is carried in frames or because the adapter cannot
 * write into the accelerator's memory. */
static ring_status choose_copy(work *w, const program_op *o, size_t total)
{
    const operand *from = &w->program->operands[o->first], *to = from + 1;
    w->step.copies = false;
    if (w->by == NULL && !w->comm->links.reaches)
        return RING_OK;
    const channel *c = w->peers[from->peer].on;
    const bool is_far = work_memory_of(w, to->buffer) != NULL;
    bool whole = true;
    if (is_far && channel_transfers(c))
        RING_TRY(find_whole(w, from, total, &whole));
    w->step.copies = channel_transfers(c) ? !whole || channel_ref(w, c, operand_address(w, o, to),
                                                                  total * to->width) == 0
                                          : is_far;
    return RING_OK;
}

static ring_status recv_step(work *w, const program_op *o, bool *moved)
{
    const size_t total = program_count(w->program, o, w->step.slice);
    if (w->step.position == 0 && w->step.phase == PHASE_NONE) /* once for each message */
        RING_TRY(choose_copy(w, o, total));
    if (w->step.copies)
        return fold_run(w, o, moved);
    do {
        RING_TRY(receive_frame(w, o, total));
        *moved = true;
        if (w->step.position < total && comm_turn_is_over(w->comm))
            return work_hold(w);
    } while (w->step.position < total);
    return RING_OK;
}

/* ---- Copy, wait ------------------------------------------------------------------- */

static ring_status copy_step(work *w, const program_op *o, bool *moved)
{
    const operand *from = &w->program->operands[o->first], *to = from + 1;
    const size_t count = program_count(w->program, o, w->step.slice);
    const char *src = operand_address(w, o, from);
    char *dst = operand_address(w, o, to);
    if (w->by != NULL)
        return fold_run(w, o, moved);
    if (from->accumulator != to->accumulator) {
        kernel_operand in = {.data = (char *)(uintptr_t)src, .accumulator = from->accumulator};
        kernel_operand out = {.data = dst, .accumulator = to->accumulator};
        kernel_fold(&out, 1, &in, 1, count, w->call.dtype, w->call.op, 0);
    } else if (src != dst && count > 0) {
        kernel_copy(dst, src, count * to->width);
    }
    return RING_OK;
}

/* Waits until the peer has released the chunks that were sent to it. The next slice overwrites only
 * scratch memory of this one, so a program without scratch memory skips its trailing waits until
 * the last slice. */
static ring_status wait_step(work *w, const program_op *o)
{
    const operand *of = &w->program->operands[o->first];
    const program *p = w->program;
    const work_peer *peer = &w->peers[of->peer];
    if (o->trailing && w->step.slice + p->channels < p->slices && p->scratch == 0)
        return RING_OK;
    const uint64_t messages = (uint64_t)w->step.runs * p->peers[of->peer].sends + o->messages;
    if (channel_is_free(w, of->peer, messages))
        return RING_OK;
    return channel_await(w, peer->on, WAIT_FREE, peer->out_base + messages);
}

ring_status step_run(work *w, const program_op *o, bool *moved)
{
    switch ((plan_kind)o->kind) {
    case PLAN_STEP_SEND:
        return o->eager ? eager_step(w, o) : send_step(w, o);
    case PLAN_STEP_RECV:
        return recv_step(w, o, moved);
    case PLAN_STEP_COPY:
        return copy_step(w, o, moved);
    case PLAN_STEP_FOLD:
        return fold_run(w, o, moved);
    case PLAN_STEP_WAIT:
        return wait_step(w, o);
    }
    return fail(RING_ERR_INTERNAL, "a program has an op of unknown kind %d", (int)o->kind);
}

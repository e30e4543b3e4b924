/* SPDX-License-Identifier: Apache-2.0
 *
 * The executor: walks a work's plan as far as it goes without blocking. It knows steps and
 * links, no algorithm and no transport.
 */
#include "comm.h"

#include "kernels.h"

static ring_status send_step(ring_work *work, const plan_step *step)
{
    const plan_loc from = plan_input(&work->cursor, step, 0);
    const plan_loc to = plan_output(&work->cursor, step, 0);
    return message_post(work, &(work_out){
        .peer = to.rank,
        .data = work_address(work, from.buffer, from.chunk),
        .elements = work_chunk_count(work, from.buffer, from.chunk)});
}

static ring_status pull_segment(ring_work *work, int peer, char *chunk)
{
    transport_link *l = work->comm->peers[peer].lanes[work->lane];
    const ring_status status = l->transport->pull(l, chunk + work->position * work->element);
    return status == RING_IN_PROGRESS ? message_await(work, peer) : status;
}

/* One frame of a message that ends in a local chunk. */
static ring_status receive_frame(ring_work *work, int peer, char *chunk, size_t total)
{
    const transport_frame *frame;
    const void *payload;
    RING_TRY(message_peek(work, peer, total, work->element, &frame, &payload));
    size_t elements = total;
    if (frame->flags & FRAME_REF)
        kernel_copy(chunk, payload, frame->bytes);
    else if ((frame->flags & FRAME_STORED) == 0) {
        elements = frame->bytes / work->element;
        if (elements > 0)
            RING_TRY(pull_segment(work, peer, chunk));
    }
    work->position += elements;
    message_consume(work, peer, frame, work->position == total);
    return RING_OK;
}

static ring_status recv_step(ring_work *work, const plan_step *step, bool *moved)
{
    const plan_loc from = plan_input(&work->cursor, step, 0);
    const plan_loc to = plan_output(&work->cursor, step, 0);
    char *chunk = work_address(work, to.buffer, to.chunk);
    const size_t total = work_chunk_count(work, to.buffer, to.chunk);
    do {
        RING_TRY(receive_frame(work, from.rank, chunk, total));
        *moved = true;
        if (work->position < total && comm_turn_is_over(work->comm))
            return RING_IN_PROGRESS;
    } while (work->position < total);
    return RING_OK;
}

static ring_status copy_step(ring_work *work, const plan_step *step)
{
    const plan_loc from = plan_input(&work->cursor, step, 0);
    const plan_loc to = plan_output(&work->cursor, step, 0);
    const void *src = work_address(work, from.buffer, from.chunk);
    void *dst = work_address(work, to.buffer, to.chunk);
    if (src != dst)
        kernel_copy(dst, src, work_chunk_count(work, to.buffer, to.chunk) * work->element);
    return RING_OK;
}

/* Ranks that disagree about the root might all send and nobody receive: a rooted call is always
 * acknowledged, so that such ranks wait and compare their calls. */
static bool always_acknowledged(const ring_work *work)
{
    return call_has_root(&work->call);
}

static ring_status ack_step(ring_work *work, const plan_step *step)
{
    const int peer = plan_output(&work->cursor, step, 0).rank;
    if (work->peers[peer].ref_in || always_acknowledged(work))
        return message_post(work, &(work_out){.peer = peer, .flags = FRAME_ACK});
    work->peers[peer].acks_out++;
    return RING_OK;
}

/* References of this work go out in plan order, so when this step is reached but a message
 * to the peer is still queued, its class is not known yet. */
static ring_status wait_ack_step(ring_work *work, const plan_step *step)
{
    const int peer = plan_input(&work->cursor, step, 0).rank;
    work_peer *state = &work->peers[peer];
    if (state->pending > 0)
        return RING_IN_PROGRESS;
    if (state->ref_out || always_acknowledged(work))
        RING_TRY(message_take_ack(work, peer));
    state->acks_in++;
    return RING_OK;
}

static ring_status run_step(ring_work *work, const plan_step *step, bool *moved)
{
    switch (step->kind) {
    case PLAN_STEP_SEND:
        return send_step(work, step);
    case PLAN_STEP_RECV:
        return recv_step(work, step, moved);
    case PLAN_STEP_COPY:
        return copy_step(work, step);
    case PLAN_STEP_FOLD:
        return fold_step(work, step, moved);
    case PLAN_STEP_ACK:
        return ack_step(work, step);
    case PLAN_STEP_WAIT_ACK:
        return wait_ack_step(work, step);
    }
    return fail(RING_ERR_INTERNAL, "a plan has a step of unknown kind %d", (int)step->kind);
}

/* @return the step to run, of the next slice if this one is through; NULL at the end. */
static const plan_step *current_step(ring_work *work)
{
    const plan_step *step = plan_at(&work->cursor);
    while (step == NULL && work->slice + 1 < work->slices) {
        work->slice++;
        work->cursor = plan_begin(work->plan);
        step = plan_at(&work->cursor);
    }
    return step;
}

static ring_status run_steps(ring_work *work, bool *moved)
{
    const plan_step *step;
    RING_TRY(message_flush(work, moved));
    while ((step = current_step(work)) != NULL) {
        if (comm_turn_is_over(work->comm))
            return RING_IN_PROGRESS;
        RING_TRY(run_step(work, step, moved));
        work->position = 0;
        *moved = true;
        plan_next(&work->cursor);
        RING_TRY(message_flush(work, moved));
    }
    return RING_OK;
}

ring_status work_advance(ring_work *work, bool *moved)
{
    const ring_status status = run_steps(work, moved);
    if (status != RING_OK && status != RING_IN_PROGRESS)
        return status;
    /* Whatever the steps wait for, links that still hold this work's frames must be pushed. */
    return message_all_flushed(work) ? status : RING_IN_PROGRESS;
}

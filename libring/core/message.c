/* SPDX-License-Identifier: Apache-2.0
 *
 * Messages of a plan as frames on links.
 *
 * Turns: on each direction of a link, messages leave and are taken in call order. A work
 * may use it only when every earlier work of the lane needs it no more. Both ends know
 * the number of messages from the plan, so nothing is said about it, a fast work may
 * start while a slow one ends, and no frame ever has to be set aside.
 */
#include "comm.h"

#include <stdlib.h>

bool message_sends_left(const ring_work *work, int peer)
{
    const work_peer *p = &work->peers[peer];
    return p->sent < work->slices * work->plan->sends[peer] ||
           p->acks_out < work->slices * work->plan->acks_out[peer];
}

bool message_recvs_left(const ring_work *work, int peer)
{
    const work_peer *p = &work->peers[peer];
    return p->received < work->slices * work->plan->recvs[peer] ||
           p->acks_in < work->slices * work->plan->acks_in[peer];
}

static link_turn *turn_at(const ring_work *work, int peer)
{
    return &work->comm->peers[peer].turn[work->lane];
}

static transport_link *link_to(const ring_work *work, int peer)
{
    return work->comm->peers[peer].lanes[work->lane];
}

/* Only the work whose turn it is waits on the link; those behind it wait on that work. */
ring_status message_await(ring_work *work, int peer)
{
    turn_at(work, peer)->wants_recv = true;
    work->waits_for = peer;
    return RING_IN_PROGRESS;
}

static ring_status wait_to_send(ring_work *work, int peer)
{
    turn_at(work, peer)->wants_send = true;
    work->waits_for = peer;
    return RING_IN_PROGRESS;
}

/* ---- In ---------------------------------------------------------------------- */

static const char *peer_host(const ring_work *work, int peer)
{
    return work->comm->world->cards[peer].hostname;
}

static ring_status mismatch(const ring_work *work, int peer, const transport_frame *frame)
{
    char mine[160], theirs[160];
    const call_signature other = {.collective = (plan_collective)frame->collective,
                                  .dtype = (ring_dtype)frame->dtype, .op = (ring_op)frame->op,
                                  .root = frame->root, .count = frame->count};
    work_describe(&work->call, work->seq, mine, sizeof mine);
    work_describe(&other, frame->seq, theirs, sizeof theirs);
    return fail(RING_ERR_MISMATCH,
                "ranks made different calls: rank %d (%s) called %s, rank %d (%s) called %s",
                work->comm->rank, peer_host(work, work->comm->rank), mine, peer,
                peer_host(work, peer), theirs);
}

/* Send matches recv; everything else matches itself. */
static plan_collective counterpart(plan_collective collective)
{
    if (collective == PLAN_SEND)
        return PLAN_RECV;
    return collective == PLAN_RECV ? PLAN_SEND : collective;
}

static bool same_call(const ring_work *work, const transport_frame *frame)
{
    const call_signature *call = &work->call;
    return frame->collective == counterpart(call->collective) && frame->dtype == call->dtype &&
           frame->op == call->op && frame->root == call->root && frame->count == call->count &&
           frame->seq == work->seq;
}

/* Drops "I wait in this call" notices, checking those that are about this call. */
static ring_status skip_call_notices(ring_work *work, int peer, const transport_frame **frame,
                                     const void **payload)
{
    transport_link *l = link_to(work, peer);
    ring_status status;
    work->waits_for = peer; /* whom to suspect if the link fails */
    while ((status = l->transport->peek(l, frame, payload)) == RING_OK &&
           ((*frame)->flags & FRAME_CALL)) {
        if ((*frame)->seq == work->seq && !same_call(work, *frame))
            return mismatch(work, peer, *frame);
        l->transport->consume(l);
    }
    return status;
}

static ring_status unexpected_frame(int peer, const transport_frame *frame)
{
    return fail(RING_ERR_INTERNAL, "rank %d sent message %u segment %u of %llu bytes (flags %u), "
                "not the one that the plan expects", peer, frame->message, frame->segment,
                (unsigned long long)frame->bytes, frame->flags);
}

static ring_status check_frame(const ring_work *work, int peer, const transport_frame *frame,
                               size_t total, size_t width)
{
    if (!same_call(work, frame))
        return mismatch(work, peer, frame);
    const bool whole = (frame->flags & (FRAME_REF | FRAME_STORED)) != 0;
    const size_t elements = whole ? total : min_size(work->segment, total - work->position);
    if (frame->flags & FRAME_ACK || frame->bytes != elements * width ||
        frame->message != (uint32_t)work->peers[peer].received ||
        frame->segment != (whole ? 0 : work->position / work->segment))
        return unexpected_frame(peer, frame);
    return RING_OK;
}

ring_status message_peek(ring_work *work, int peer, size_t total, size_t width,
                         const transport_frame **frame, const void **payload)
{
    if (turn_at(work, peer)->recvs_taken)
        return RING_IN_PROGRESS;
    const ring_status status = skip_call_notices(work, peer, frame, payload);
    if (status == RING_IN_PROGRESS)
        return message_await(work, peer);
    RING_TRY(status);
    RING_TRY(check_frame(work, peer, *frame, total, width));
    work->peers[peer].dst_ref = (*frame)->dst_ref;
    if ((*frame)->flags & FRAME_REF) {
        transport_link *l = link_to(work, peer);
        *payload = l->transport->map(l, (*frame)->src_ref, (*frame)->bytes);
        if (*payload == NULL)
            return fail(RING_ERR_PEER, "rank %d refers to memory outside of its heap", peer);
    }
    return RING_OK;
}

void message_consume(ring_work *work, int peer, const transport_frame *frame, bool last)
{
    transport_link *l = link_to(work, peer);
    work->comm->bytes_received += frame->bytes;
    comm_count_moved(work->comm, frame->bytes);
    if (frame->flags & FRAME_REF)
        work->peers[peer].ref_in = true;
    l->transport->consume(l);
    if (last)
        work->peers[peer].received++;
}

ring_status message_take_ack(ring_work *work, int peer)
{
    const transport_frame *frame;
    const void *payload;
    if (turn_at(work, peer)->recvs_taken)
        return RING_IN_PROGRESS;
    const ring_status status = skip_call_notices(work, peer, &frame, &payload);
    if (status == RING_IN_PROGRESS)
        return message_await(work, peer);
    RING_TRY(status);
    if (!same_call(work, frame))
        return mismatch(work, peer, frame);
    if ((frame->flags & FRAME_ACK) == 0)
        return unexpected_frame(peer, frame);
    link_to(work, peer)->transport->consume(link_to(work, peer));
    return RING_OK;
}

/* ---- Out --------------------------------------------------------------------- */

static transport_frame frame_of(const ring_work *work, int peer, uint8_t flags)
{
    const transport_link *l = link_to(work, peer);
    const call_signature *call = &work->call;
    transport_frame frame = {
        .seq = work->seq,
        .message = (uint32_t)work->peers[peer].sent,
        .flags = flags,
        .collective = (uint8_t)call->collective,
        .dtype = (uint8_t)call->dtype,
        .op = (uint8_t)call->op,
        .root = call->root,
        .count = call->count,
    };
    if (work->dst_bytes > 0 && work->dst != NULL)
        frame.dst_ref = l->transport->ref(l, work->dst, work->dst_bytes);
    return frame;
}

static ring_status send_frame(ring_work *work, int peer, const transport_frame *frame,
                              const void *payload)
{
    transport_link *l = link_to(work, peer);
    work->waits_for = peer; /* whom to suspect if the link fails */
    const ring_status status = l->transport->send(l, frame, payload);
    if (status == RING_IN_PROGRESS)
        return wait_to_send(work, peer);
    RING_TRY(status);
    work->peers[peer].flush_mark = l->frames_sent;
    return RING_OK;
}

static void count_sent(ring_work *work, int peer, uint64_t bytes, bool last)
{
    work->comm->bytes_sent += bytes;
    if (last) {
        work->peers[peer].sent++;
        work->comm->messages_sent++;
    }
}

static ring_status grow_queue(ring_work *work)
{
    const int32_t cap = work->queue_cap > 0 ? 2 * work->queue_cap : 16;
    work_out *queue = realloc(work->queue, (size_t)cap * sizeof *queue);
    if (queue == NULL)
        return fail(RING_ERR_MEMORY, "queueing messages");
    work->queue = queue;
    work->queue_cap = cap;
    return RING_OK;
}

ring_status message_post(ring_work *work, const work_out *entry)
{
    if (work->queue_first == work->queue_end)
        work->queue_first = work->queue_end = 0;
    if (work->queue_end == work->queue_cap)
        RING_TRY(grow_queue(work));
    work->queue[work->queue_end++] = *entry;
    work->peers[entry->peer].pending++;
    return RING_OK;
}

static ring_status send_notice(ring_work *work, const work_out *out)
{
    transport_frame frame = frame_of(work, out->peer, out->flags);
    frame.bytes = out->bytes;
    RING_TRY(send_frame(work, out->peer, &frame, NULL));
    if (out->flags & FRAME_ACK)
        work->peers[out->peer].acks_out++;
    else
        count_sent(work, out->peer, out->bytes, true);
    return RING_OK;
}

static ring_status send_reference(ring_work *work, const work_out *out, uint64_t ref)
{
    transport_frame frame = frame_of(work, out->peer, FRAME_REF);
    frame.bytes = out->elements * work->element;
    frame.src_ref = ref;
    RING_TRY(send_frame(work, out->peer, &frame, NULL));
    work->peers[out->peer].ref_out = true;
    count_sent(work, out->peer, frame.bytes, true);
    return RING_OK;
}

static ring_status send_segments(ring_work *work, work_out *out)
{
    do {
        const size_t elements = min_size(work->segment, out->elements - out->position);
        transport_frame frame = frame_of(work, out->peer, 0);
        frame.segment = (uint32_t)(out->position / work->segment);
        frame.bytes = elements * work->element;
        RING_TRY(send_frame(work, out->peer, &frame, out->data + out->position * work->element));
        out->position += elements;
        count_sent(work, out->peer, frame.bytes, out->position == out->elements);
        comm_count_moved(work->comm, frame.bytes);
        if (out->position < out->elements && comm_turn_is_over(work->comm))
            return wait_to_send(work, out->peer);
    } while (out->position < out->elements);
    return RING_OK;
}

/* Point-to-point messages are carried: an acknowledgement would come on the direction that
 * the receiver's own sends use, in an order that the two calls do not fix. */
static uint64_t chunk_reference(const ring_work *work, const work_out *out)
{
    const transport_link *l = link_to(work, out->peer);
    const size_t bytes = out->elements * work->element;
    if (out->by_value || out->position > 0 || work->lane != TRANSPORT_COLLECTIVE ||
        bytes < REFERENCE_MIN_BYTES)
        return 0;
    return l->transport->ref(l, out->data, bytes);
}

static ring_status send_chunk(ring_work *work, work_out *out)
{
    const uint64_t ref = chunk_reference(work, out);
    return ref != 0 ? send_reference(work, out, ref) : send_segments(work, out);
}

static ring_status send_entry(ring_work *work, work_out *out)
{
    if (turn_at(work, out->peer)->sends_taken)
        return RING_IN_PROGRESS;
    return out->flags != 0 ? send_notice(work, out) : send_chunk(work, out);
}

static bool earlier_to_same_peer(const ring_work *work, int32_t index)
{
    for (int32_t i = work->queue_first; i < index; i++)
        if (work->queue[i].peer == work->queue[index].peer)
            return true;
    return false;
}

/* Done entries get peer -1; the front of the queue moves over them. */
ring_status message_flush(ring_work *work, bool *moved)
{
    for (int32_t i = work->queue_first; i < work->queue_end; i++) {
        work_out *out = &work->queue[i];
        if (out->peer < 0 || earlier_to_same_peer(work, i))
            continue;
        const size_t before = out->position;
        const ring_status status = send_entry(work, out);
        *moved |= out->position != before;
        if (status == RING_IN_PROGRESS)
            continue;
        RING_TRY(status);
        work->peers[out->peer].pending--;
        out->peer = -1;
        *moved = true;
    }
    while (work->queue_first < work->queue_end && work->queue[work->queue_first].peer < 0)
        work->queue_first++;
    return RING_OK;
}

bool message_all_flushed(ring_work *work)
{
    bool all = work->queue_first == work->queue_end;
    for (int p = 0; p < work->comm->ranks; p++) {
        const transport_link *l = link_to(work, p);
        if (l == NULL || work->peers[p].flush_mark <= l->transport->flushed(l))
            continue;
        turn_at(work, p)->wants_send = true;
        all = false;
    }
    return all;
}

ring_status message_reserve(ring_work *work, int peer, void **room)
{
    transport_link *l = link_to(work, peer);
    if (work->peers[peer].pending > 0 || turn_at(work, peer)->sends_taken)
        return RING_IN_PROGRESS; /* what is before it waits for the link */
    work->waits_for = peer; /* whom to suspect if the link fails */
    *room = l->transport->reserve(l);
    if (*room != NULL)
        return RING_OK;
    RING_TRY(l->transport->progress(l)); /* full, or broken? */
    return wait_to_send(work, peer);
}

ring_status message_send_reserved(ring_work *work, int peer, void *room, size_t elements,
                                  size_t width, bool last)
{
    transport_frame frame = frame_of(work, peer, 0);
    frame.segment = (uint32_t)(work->position / work->segment);
    frame.bytes = elements * width;
    const ring_status status = send_frame(work, peer, &frame, room);
    if (status == RING_IN_PROGRESS)
        return fail(RING_ERR_INTERNAL, "the link to rank %d took back the room it gave", peer);
    RING_TRY(status);
    count_sent(work, peer, frame.bytes, last);
    return RING_OK;
}

/* ---- Different calls that wait for each other ------------------------------------- */

/* Not to one that has left: a notice would only break the connection under its last data. */
static void tell_call(ring_work *work, int peer)
{
    transport_link *l = link_to(work, peer);
    comm_peer *state = &work->comm->peers[peer];
    if (state->told == work->seq + 1 || control_left(work->comm->world, peer))
        return;
    const transport_frame frame = frame_of(work, peer, FRAME_CALL);
    if (l->transport->send(l, &frame, NULL) == RING_OK)
        state->told = work->seq + 1;
}

/* Looks at the first frame that is not an old notice. */
static ring_status compare_with(ring_work *work, int peer)
{
    transport_link *l = link_to(work, peer);
    const transport_frame *frame;
    const void *payload;
    ring_status status;
    while ((status = l->transport->peek(l, &frame, &payload)) == RING_OK &&
           (frame->flags & FRAME_CALL) && frame->seq < work->seq)
        l->transport->consume(l);
    if (status != RING_OK) {
        tell_call(work, peer);
        return RING_OK; /* nothing to compare; a broken link shows where it is needed */
    }
    return frame->seq == work->seq && !same_call(work, frame) ? mismatch(work, peer, frame)
                                                              : RING_OK;
}

ring_status message_compare_calls(ring_work *work)
{
    for (int p = 0; p < work->comm->ranks; p++)
        if (link_to(work, p) != NULL)
            RING_TRY(compare_with(work, p));
    return RING_OK;
}

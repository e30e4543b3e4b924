/* SPDX-License-Identifier: Apache-2.0
 * Receives frames from a link, and checks each against the message that the work's program expects
 * next. */
#include "channel_in.h"

#include "mismatch.h"
#include "operand.h"
#include "references.h"

static bool same_call(const work *w, const transport_frame *frame)
{
    if (frame->signature != w->signature || frame->call != (uint16_t)w->seq)
        return false;
    const plan_facts *facts = w->program->facts;
    return (frame->flags & FRAME_LONG) == 0 ||
           ((frame->ext.count == w->call.count || facts->uneven) &&
            (frame->ext.root == w->call.root || !facts->rooted));
}

/* In some v-forms only two ranks know a count, so the count is not in the signature. The length of
 * the message is compared with the expected one instead. */
static ring_status check_length(const work *w, const channel *c, const transport_frame *frame,
                                size_t total)
{
    if (!w->program->facts->uneven)
        return RING_OK;
    const size_t element = ring_dtype_size(w->call.dtype), mine = total / element;
    const size_t theirs = frame->flags & FRAME_LONG ? frame->ext.count : frame->length / element;
    return mine == theirs ? RING_OK : mismatch_of_length(w, c->rank, theirs, mine);
}

static ring_status check_frame(const work *w, const channel *c, const transport_frame *frame,
                               uint64_t number, size_t total, size_t done, size_t segment)
{
    if (!same_call(w, frame))
        return mismatch_of_frame(w, c, frame);
    RING_TRY(check_length(w, c, frame, total));
    bool right = frame->message == number;
    if ((frame->flags & FRAME_LONG) == 0)
        right &= done == 0 && frame->length == total;
    else if (frame->flags & (FRAME_REF | FRAME_STORED))
        right &= frame->ext.bytes == total;
    else
        right &= frame->ext.bytes == min_size(segment, total - done) &&
                 frame->ext.segment == done / segment;
    if (right)
        return RING_OK;
    return fail(
        RING_ERR_INTERNAL,
        "rank %d sent message %llu (flags %u, length %u), but the plan expects message %llu",
        c->rank, (unsigned long long)frame->message, frame->flags, frame->length,
        (unsigned long long)number);
}

static ring_status peek(work *w, const operand *from, uint64_t number, size_t total, arrival *in)
{
    work_peer *peer = &w->peers[from->peer];
    channel *c = peer->on;
    const void *payload;
    if (c->received != number)
        return RING_IN_PROGRESS;
    w->wait.last = c; /* the error names this peer if the link fails */
    RING_TRY(c->link->transport->peek(c->link, &in->frame, &payload));
    RING_TRY(check_frame(w, c, in->frame, number, total * from->width,
                         w->step.position * from->width, w->program->segment * from->width));
    const bool is_long = in->frame->flags & FRAME_LONG;
    in->payload = payload;
    in->bytes = is_long ? in->frame->ext.bytes : in->frame->length;
    in->whole = (in->frame->flags & (FRAME_REF | FRAME_STORED)) != 0;
    if (is_long && !peer->dst_announced) {
        peer->dst_announced = true;
        peer->dst_ref = in->frame->ext.dst_ref;
    }
    if ((in->frame->flags & FRAME_REF) == 0 || channel_transfers(c))
        return RING_OK; /* if the link cannot map the message, channel_fetch() gets it later */
    in->payload = channel_map(w, c, in->frame->ext.src_ref, in->bytes);
    return in->payload != NULL ? RING_OK : RING_ERR_PEER;
}

ring_status channel_peek(work *w, const operand *from, size_t total, arrival *in)
{
    const uint64_t number = operand_message(w, from, false);
    const ring_status status = peek(w, from, number, total, in);
    return status == RING_IN_PROGRESS
               ? channel_await(w, w->peers[from->peer].on, WAIT_FRAME, number)
               : status;
}

/* The peer waits for the release of its messages only if one of them was sent by reference. */
void channel_consume(work *w, int32_t from, const arrival *in, bool last)
{
    work_peer *peer = &w->peers[from];
    channel *c = peer->on;
    w->comm->info.bytes_received += in->bytes;
    comm_count_moved(w->comm, in->bytes);
    peer->ref_in |= (in->frame->flags & FRAME_REF) != 0;
    c->link->transport->consume(c->link);
    if (!last)
        return;
    c->received++;
    ring_assert(c->received <= c->in_given);
    if (peer->ref_in)
        c->link->transport->release(c->link, c->received);
}

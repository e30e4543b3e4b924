/* SPDX-License-Identifier: Apache-2.0
 * Sends and receives the frames that carry tagged messages, questions, grants and credits. The head
 * of tagged.h describes the protocol. */
#include "tagged_link.h"

#include "placeholder_link.h"
#include "tagged_match.h"
#include "tagged_traffic.h"

#include <stdlib.h>
#include <string.h>

enum tagged_kind { TAGGED_BYTES, TAGGED_ASK, TAGGED_GRANT, TAGGED_CREDIT };
enum { KIND_BITS = 2 };

/* The payload of a question. */
typedef struct question {
    uint64_t number, count;
} question;

/* ---- Sending --------------------------------------------------------------------------- */

static transport_frame frame_of(const tagged_peer *p, enum tagged_kind kind, int32_t tag,
                                uint64_t signature)
{
    return (transport_frame){.call = (uint16_t)((unsigned)p->frames_out << KIND_BITS | kind),
                             .signature = signature,
                             .message = (uint32_t)tag};
}

static ring_status send_frame(tagged_peer *p, const transport_frame *frame, const void *payload)
{
    transport_link *l = p->on->link;
    RING_TRY(l->transport->send(l, frame, payload, true));
    p->frames_out++;
    return RING_OK;
}

/* @param of  [bytes] the frame's payload, at most TRANSPORT_INLINE bytes. */
static ring_status send_inline(tagged_peer *p, transport_frame *frame, const void *of, size_t bytes)
{
    frame->length = (uint8_t)bytes;
    if (bytes > 0)
        memcpy(frame->data, of, bytes);
    return send_frame(p, frame, NULL);
}

/* Sends a message ahead, in one frame or in segments. */
static ring_status send_ahead(tagged_peer *p, work *w)
{
    if (w->buffers.src_bytes <= TRANSPORT_INLINE) {
        transport_frame frame = frame_of(p, TAGGED_BYTES, w->call.tag, w->signature);
        return send_inline(p, &frame, w->buffers.src, w->buffers.src_bytes);
    }
    const size_t segment = w->program->segment * ring_dtype_size(w->call.dtype);
    while (w->step.position < w->buffers.src_bytes) {
        const size_t bytes = min_size(segment, w->buffers.src_bytes - w->step.position);
        transport_frame frame = frame_of(p, TAGGED_BYTES, w->call.tag, w->signature);
        frame.flags = FRAME_LONG;
        frame.ext.bytes = bytes;
        frame.ext.count = w->call.count;
        frame.ext.src_ref = frame.ext.dst_ref = 0;
        frame.ext.segment = 0;
        frame.ext.root = 0;
        RING_TRY(send_frame(p, &frame, w->buffers.src + w->step.position));
        w->step.position += bytes;
    }
    return RING_OK;
}

/* Called when the link has all frames of a message that is sent ahead. The send ends when the link
 * has flushed these frames. */
static void end_ahead(tagged_peer *p, work *w, const work *own)
{
    const transport_link *l = p->on->link;
    w->peers[0] = (work_peer){.on = p->on, .flush_mark = l->frames_sent, .first_ref = UINT64_MAX};
    w->lends = (l->transport->powers & TRANSPORT_COPIES) == 0;
    w->step.slice = w->program->slices;
    w->tagged.met = true;
    w->comm->info.bytes_sent += w->buffers.src_bytes;
    w->comm->info.messages_sent++;
    comm_count_moved(w->comm, w->buffers.src_bytes);
    p->ahead += tagged_charge(w->buffers.src_bytes);
    if (w != own)
        (void)work_hold(w);
}

static ring_status ask(tagged_peer *p, const work *w)
{
    const question q = {.number = p->questions, .count = w->call.count};
    transport_frame frame = frame_of(p, TAGGED_ASK, w->call.tag, w->signature);
    return send_inline(p, &frame, &q, sizeof q);
}

static ring_status take_all(tagged_peer *p);

/* Decides whether a message is sent ahead. If the window has no room for it, consumes frames first,
 * which may be credits. */
static ring_status may_send_ahead(tagged_peer *p, const work *w, bool *ahead)
{
    *ahead = w->step.position > 0;
    if (*ahead || w->buffers.src_bytes > EAGER_BYTES || w->buffers.src_by != NULL)
        return RING_OK;
    if (p->ahead + tagged_charge(w->buffers.src_bytes) > TAGGED_WINDOW)
        RING_TRY(take_all(p));
    *ahead = p->ahead + tagged_charge(w->buffers.src_bytes) <= TAGGED_WINDOW;
    return RING_OK;
}

static void leave_queue(tagged_peer *p, const work *w)
{
    work **at = &p->queue;
    while (*at != w)
        at = &(*at)->tagged.next;
    *at = w->tagged.next;
    if (*at == NULL)
        p->queue_end = at;
    p->open--;
}

/* Sends one message ahead or asks for it. Then the work leaves the queue, and waits for its grant
 * if it has asked. */
static ring_status send_one(tagged_peer *p, work *w, const work *own)
{
    bool ahead;
    RING_TRY(may_send_ahead(p, w, &ahead));
    const ring_status status = ahead ? send_ahead(p, w) : ask(p, w);
    p->sending = status == RING_IN_PROGRESS && w->step.position > 0 ? w : NULL;
    RING_TRY(status);
    leave_queue(p, w);
    if (ahead) {
        end_ahead(p, w, own);
        return RING_OK;
    }
    channel *granted = w->program->on[0];
    w->wait.number = p->questions++;
    w->tagged.next = NULL;
    *p->asked_end = w;
    p->asked_end = &w->tagged.next;
    return granted->dialed ? RING_OK : channel_dial(granted);
}

/* Ignores the failure of a link unless a work cannot end without the link.
 * @return RING_IN_PROGRESS for an ignored failure. */
static ring_status of_link(tagged_peer *p, ring_status status)
{
    if (status == RING_OK || status == RING_IN_PROGRESS)
        return status;
    p->on->lost = true;
    return tagged_first_waiter(p) != NULL ? status : RING_IN_PROGRESS;
}

static ring_status send_grants(tagged_peer *p, bool *moved)
{
    while (p->grants != NULL) {
        tagged_message *m = p->grants;
        transport_frame frame = frame_of(p, TAGGED_GRANT, 0, 0);
        RING_TRY(send_inline(p, &frame, &m->question, sizeof m->question));
        p->grants = m->next;
        if (p->grants == NULL)
            p->grants_end = &p->grants;
        tagged_message_drop(p->on->comm, m);
        *moved = true;
    }
    return RING_OK;
}

static ring_status send_credit(tagged_peer *p, bool *moved)
{
    const uint64_t owed = p->owed;
    if (owed < TAGGED_OWED)
        return RING_OK;
    transport_frame frame = frame_of(p, TAGGED_CREDIT, 0, 0);
    RING_TRY(send_inline(p, &frame, &owed, sizeof owed));
    p->owed = 0;
    p->unannounced -= owed;
    *moved = true;
    return RING_OK;
}

ring_status tagged_flush(tagged_peer *p, const work *own, bool *moved)
{
    work *w;
    RING_TRY(of_link(p, send_grants(p, moved)));
    RING_TRY(of_link(p, send_credit(p, moved)));
    while ((w = tagged_next_to_send(p)) != NULL && !comm_turn_is_over(p->on->comm)) {
        const size_t before = w->step.position;
        const ring_status status = send_one(p, w, own);
        *moved |= status == RING_OK || w->step.position != before;
        RING_TRY(status);
    }
    return RING_OK;
}

/* ---- Receiving --------------------------------------------------------------------------- */

static ring_status unexpected(const tagged_peer *p, const transport_frame *f)
{
    return fail(RING_ERR_INTERNAL,
                "rank %d sent an unexpected frame of tagged messages (call %u, frame %u, flags %u, "
                "length %u)",
                p->on->rank, f->call, p->frames_in, f->flags, f->length);
}

/* Reads the sender's call from a frame. @param[out] bytes  the size of its message. */
static ring_status read_call(const tagged_peer *p, const transport_frame *f, size_t count,
                             call_signature *call, size_t *bytes)
{
    *call = signature_of_frame(f);
    call->count = count;
    call->tagged = true;
    call->tag = (int32_t)(uint32_t)f->message;
    const size_t element = ring_dtype_size(call->dtype);
    if (call->collective != PLAN_SEND || call->tag < 0 || element == 0 ||
        !mul_size(count, element, bytes))
        return unexpected(p, f);
    return RING_OK;
}

static ring_status begin_message(tagged_peer *p, const transport_frame *f,
                                 const call_signature *call, tagged_message **out)
{
    tagged_message *m = tagged_message_new(p->on->comm);
    if (m == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while receiving a tagged message from rank %d",
                    p->on->rank);
    m->from = p;
    m->call = *call;
    m->signature = f->signature;
    m->seq = p->arrived++;
    m->peer = p->on->rank;
    *out = m;
    return RING_OK;
}

static ring_status take_question(tagged_peer *p, const transport_frame *f)
{
    question q;
    call_signature call;
    tagged_message *m = NULL;
    size_t bytes = 0;
    if (f->flags != 0 || f->length != sizeof q || p->in != NULL)
        return unexpected(p, f);
    memcpy(&q, f->data, sizeof q);
    RING_TRY(read_call(p, f, q.count, &call, &bytes));
    RING_TRY(begin_message(p, f, &call, &m));
    m->asked = true;
    m->question = q.number;
    RING_TRY(tagged_deliver(p->on->comm, m));
    tagged_arrived(m);
    return RING_OK;
}

/* Chooses the destination of the payload: the dst of the receive if it may be written now, else a
 * new buffer. */
static ring_status choose_destination(tagged_message *m)
{
    ring_comm *comm = m->from->on->comm;
    const work *w = m->receiver;
    if (m->bytes == 0)
        return RING_OK;
    if (w != NULL && w->tagged.open && w->buffers.dst_by == NULL) {
        m->to = w->buffers.dst;
        return RING_OK;
    }
    m->to = m->kept = malloc(m->bytes);
    if (m->kept == NULL)
        return fail(RING_ERR_MEMORY,
                    "out of memory while keeping a tagged message from rank %d (%zu bytes)",
                    m->peer, m->bytes);
    comm->tagged.bytes += m->bytes;
    return RING_OK;
}

static ring_status begin_bytes(tagged_peer *p, const transport_frame *f)
{
    call_signature call = signature_of_frame(f);
    const size_t element = ring_dtype_size(call.dtype);
    const size_t count = f->flags != 0 ? f->ext.count : element > 0 ? f->length / element : 0;
    tagged_message *m = NULL;
    size_t bytes = 0;
    RING_TRY(read_call(p, f, count, &call, &bytes));
    if (bytes > EAGER_BYTES || (f->flags == 0 && bytes != f->length))
        return unexpected(p, f);
    if (p->unannounced + tagged_charge(bytes) > TAGGED_WINDOW)
        return unexpected(p, f);
    RING_TRY(begin_message(p, f, &call, &m));
    p->unannounced += tagged_charge(bytes);
    m->bytes = bytes;
    RING_TRY(tagged_deliver(p->on->comm, m));
    RING_TRY(choose_destination(m));
    p->in = m;
    return RING_OK;
}

static ring_status take_bytes(tagged_peer *p, const transport_frame *f)
{
    const size_t bytes = transport_carried(f);
    ring_comm *comm = p->on->comm;
    if (p->in == NULL)
        RING_TRY(begin_bytes(p, f));
    tagged_message *m = p->in;
    if ((f->flags & ~FRAME_LONG) != 0 || f->signature != m->signature ||
        (int32_t)(uint32_t)f->message != m->call.tag || bytes > m->bytes - m->done ||
        (bytes == 0 && m->bytes > 0))
        return unexpected(p, f);
    if (f->flags != 0)
        RING_TRY(of_link(p, p->on->link->transport->pull(p->on->link, m->to + m->done)));
    else if (bytes > 0)
        memcpy(m->to + m->done, f->data, bytes);
    m->done += bytes;
    comm->info.bytes_received += bytes;
    comm_count_moved(comm, bytes);
    if (m->done < m->bytes)
        return RING_OK;
    p->in = NULL;
    tagged_arrived(m);
    return RING_OK;
}

static ring_status take_number(const tagged_peer *p, const transport_frame *f, uint64_t *number)
{
    if (f->flags != 0 || f->length != sizeof *number)
        return unexpected(p, f);
    memcpy(number, f->data, sizeof *number);
    return RING_OK;
}

/* Makes the send with this question an ordinary send. Both ends give granted messages the next
 * message numbers in the order of the grants. */
static ring_status take_grant(tagged_peer *p, const transport_frame *f)
{
    uint64_t number = 0;
    RING_TRY(take_number(p, f, &number));
    work **at = &p->asked;
    while (*at != NULL && (*at)->wait.number != number)
        at = &(*at)->tagged.next;
    work *w = *at;
    if (w == NULL)
        return unexpected(p, f);
    *at = w->tagged.next;
    if (*at == NULL)
        p->asked_end = at;
    RING_TRY(work_take_messages(w));
    w->seq = w->peers[0].out_base;
    w->tagged.met = true;
    (void)work_hold(w);
    return RING_OK;
}

static ring_status take_credit(tagged_peer *p, const transport_frame *f)
{
    uint64_t bytes = 0;
    RING_TRY(take_number(p, f, &bytes));
    if (bytes > p->ahead)
        return unexpected(p, f);
    p->ahead -= bytes;
    return RING_OK;
}

static ring_status take(tagged_peer *p, const transport_frame *f)
{
    if (f->call >> KIND_BITS != (uint16_t)(p->frames_in << KIND_BITS) >> KIND_BITS)
        return unexpected(p, f);
    switch ((enum tagged_kind)(f->call & ((1u << KIND_BITS) - 1))) {
    case TAGGED_BYTES:
        return take_bytes(p, f);
    case TAGGED_ASK:
        return take_question(p, f);
    case TAGGED_GRANT:
        return take_grant(p, f);
    case TAGGED_CREDIT:
        return take_credit(p, f);
    }
    return unexpected(p, f);
}

/* Consumes one frame. @return RING_IN_PROGRESS if no complete frame has arrived. */
static ring_status take_frame(tagged_peer *p)
{
    transport_link *l = p->on->link;
    const transport_frame *frame;
    const void *payload;
    RING_TRY(of_link(p, l->transport->peek(l, &frame, &payload)));
    RING_TRY(take(p, frame));
    l->transport->consume(l);
    p->frames_in++;
    return RING_OK;
}

static ring_status take_all(tagged_peer *p)
{
    ring_status status;
    do
        status = take_frame(p);
    while (status == RING_OK);
    return status == RING_IN_PROGRESS ? RING_OK : status;
}

/* ---- A turn -------------------------------------------------------------------------------- */

/* Sends to one peer and receives from it. If a receive from any source is matched, the next turn
 * starts with the next peer. */
static ring_status serve_peer(tagged_peer *p, bool *moved)
{
    ring_comm *comm = p->on->comm;
    const int32_t any = comm->tagged.any;
    ring_status status = tagged_flush(p, NULL, moved);
    if (status == RING_IN_PROGRESS)
        status = RING_OK;
    while (status == RING_OK && tagged_listens(p) && !comm_turn_is_over(comm)) {
        status = take_frame(p);
        *moved |= status == RING_OK;
        if (comm->tagged.any != any) {
            comm->tagged.next_visited = p->next;
            break;
        }
    }
    return status == RING_IN_PROGRESS ? RING_OK : status;
}

ring_status tagged_turn(ring_comm *comm, bool *moved)
{
    tagged_peer *const first = comm->tagged.next_visited, *p = first;
    if (p == NULL)
        return RING_OK;
    do {
        const ring_status status = p->on->place >= 0 ? serve_peer(p, moved) : RING_OK;
        if (status != RING_OK) {
            comm_fail_by(comm, tagged_first_waiter(p), p->on, status);
            return status;
        }
        p = p->next;
    } while (p != first);
    return RING_OK;
}

/* SPDX-License-Identifier: Apache-2.0
 * Sends messages as frames of a link, and queues those for which the link has no room yet. The
 * frames carry a message's bytes, refer to them, or report that they are in the peer's memory. */
#include "channel_out.h"

#include "references.h"

#include <stdlib.h>
#include <string.h>

/* ---- The queue ------------------------------------------------------------------------------ */

static void keep_spare(ring_comm *comm, posted *p)
{
    p->next = comm->memory.posts;
    comm->memory.posts = p;
}

ring_status channels_keep_posts(ring_comm *comm, int count)
{
    for (int i = 0; i < count; i++) {
        posted *p = malloc(sizeof *p);
        if (p == NULL)
            return fail(RING_ERR_MEMORY, "out of memory while creating the communicator");
        keep_spare(comm, p);
    }
    return RING_OK;
}

void channel_clear(channel *c)
{
    while (c->posts != NULL) {
        posted *p = c->posts;
        c->posts = p->next;
        if (p->asked)
            p->by->settle(p->by);
        keep_spare(c->comm, p);
    }
    memset(c->waiting, 0, sizeof c->waiting);
}

/* ---- Frames --------------------------------------------------------------------------------- */

static transport_frame frame_of(const work *w, uint64_t number)
{
    return (
        transport_frame){.call = (uint16_t)w->seq, .signature = w->signature, .message = number};
}

/* @param bytes  bytes of the frame. @param total  bytes of the message. */
static transport_frame long_frame(const work *w, const work_peer *peer, uint64_t number,
                                  uint8_t flags, uint64_t bytes, uint64_t total)
{
    const bool uneven = w->program->facts->uneven;
    transport_frame frame = frame_of(w, number);
    frame.flags = FRAME_LONG | flags;
    frame.ext.bytes = bytes;
    frame.ext.count = uneven ? total / ring_dtype_size(w->call.dtype) : w->call.count;
    frame.ext.root = w->program->facts->rooted ? w->call.root : 0;
    /* Peers cannot map an accelerator's memory, but they can put into it if the link reaches it. */
    const bool offers = w->buffers.dst_bytes > 0 && w->buffers.dst != NULL &&
                        (work_memory_of(w, PLAN_DST) == NULL || channel_transfers(peer->on));
    frame.ext.dst_ref = offers ? channel_ref(w, peer->on, w->buffers.dst, w->buffers.dst_bytes) : 0;
    return frame;
}

static void note_frame(work *w, work_peer *peer)
{
    const transport_link *l = peer->on->link;
    peer->flush_mark = l->frames_sent;
    w->lends |= (l->transport->powers & TRANSPORT_COPIES) == 0;
    if (channel_holds_frames(peer->on))
        channel_activate(peer->on);
}

static ring_status send_frame(work *w, work_peer *peer, const transport_frame *frame,
                              const void *payload, bool copy)
{
    transport_link *l = peer->on->link;
    w->wait.last = peer->on; /* the error names this peer if the link fails */
    RING_TRY(l->transport->send(l, frame, payload, copy));
    note_frame(w, peer);
    return RING_OK;
}

static void count_sent(work *w, work_peer *peer, uint64_t bytes, bool last)
{
    w->comm->info.bytes_sent += bytes;
    comm_count_moved(w->comm, bytes);
    if (last) {
        peer->on->sent++;
        w->comm->info.messages_sent++;
    }
    ring_assert(peer->on->sent <= peer->on->out_given);
}

static ring_status send_inline(posted *m, work_peer *peer)
{
    transport_frame frame = frame_of(m->work, m->number);
    frame.length = (uint8_t)m->bytes;
    if (m->bytes > 0)
        memcpy(frame.data, m->data, m->bytes);
    RING_TRY(send_frame(m->work, peer, &frame, NULL, true));
    count_sent(m->work, peer, m->bytes, true);
    return RING_OK;
}

static void count_message(work *w, work_peer *peer, uint64_t bytes)
{
    w->comm->info.bytes_sent += bytes;
    w->comm->info.messages_sent++;
    peer->on->sent++;
}

static ring_status send_notice(posted *m, work_peer *peer, uint8_t flag, uint64_t ref)
{
    transport_frame frame = long_frame(m->work, peer, m->number, flag, m->bytes, m->bytes);
    frame.ext.src_ref = ref;
    RING_TRY(send_frame(m->work, peer, &frame, NULL, true));
    if (flag == FRAME_REF && peer->first_ref == UINT64_MAX)
        peer->first_ref = m->number;
    count_message(m->work, peer, m->bytes);
    return RING_OK;
}

RING_RARE static ring_status put_message(posted *m, work_peer *peer)
{
    const transport_frame frame = long_frame(m->work, peer, m->number, FRAME_STORED, m->bytes,
                                             m->bytes);
    transport_link *l = peer->on->link;
    m->work->wait.last = peer->on; /* the error names this peer if the link fails */
    RING_TRY(l->transport->put(l, &frame, m->data, m->put_at));
    note_frame(m->work, peer);
    count_message(m->work, peer, m->bytes);
    return RING_OK;
}

/* Sends segments up to @p end, which is the end of the message or of a whole segment. */
static ring_status send_segments(posted *m, work_peer *peer, size_t end)
{
    const bool copy = m->copy || (channel_transfers(peer->on) && !work_may_lend(m->work, m->data));
    do {
        const size_t bytes = min_size(m->segment, m->bytes - m->done);
        transport_frame frame = long_frame(m->work, peer, m->number, 0, bytes, m->bytes);
        frame.ext.segment = (uint32_t)(m->done / m->segment);
        RING_TRY(send_frame(m->work, peer, &frame, m->data + m->done, copy));
        m->done += bytes;
        count_sent(m->work, peer, bytes, m->done == m->bytes);
        if (m->done < end && comm_turn_is_over(m->work->comm))
            return RING_IN_PROGRESS;
    } while (m->done < end);
    return RING_OK;
}

/* Makes the accelerator copy the next frame's bytes into room that the link has reserved. */
static ring_status bring_segment(posted *m, channel *c, size_t bytes, void **room)
{
    RING_TRY(channel_reserve(c, m->number, room));
    if (!m->asked)
        RING_TRY(accelerator_copy_to_host(m->by, *room, m->data + m->done, bytes, &m->brought));
    m->asked = true;
    m->by->reap(m->by);
    const ring_status status = ticket_status(&m->brought);
    if (status == RING_IN_PROGRESS)
        return status;
    m->asked = false;
    return status == RING_OK ? RING_OK
                             : fail(status, "the accelerator (%s) failed to copy", m->by->name);
}

RING_RARE static ring_status send_from_device(posted *m, work_peer *peer)
{
    while (m->done < m->bytes) {
        const size_t bytes = min_size(m->segment, m->bytes - m->done);
        void *room;
        RING_TRY(bring_segment(m, peer->on, bytes, &room));
        RING_TRY(channel_send_room(m->work, m->peer, m->number, room, m->done, bytes, m->segment,
                                   m->bytes));
        m->done += bytes;
    }
    return RING_OK;
}

/* @return true if the bytes must be copied from the accelerator, because the link's adapter cannot
 * read its memory, or because the message is short, when a copy is faster than a reference. */
static bool has_to_be_brought(const posted *m, const channel *c)
{
    if (m->by == NULL || m->bytes == 0)
        return false;
    return m->asked || m->copy || m->bytes < REFERENCE_MIN_BYTES || !channel_transfers(c) ||
           channel_ref(m->work, c, m->data, m->bytes) == 0;
}

static ring_status send_message(posted *m)
{
    work_peer *peer = &m->work->peers[m->peer];
    if (m->stored)
        return m->put_at != 0 ? put_message(m, peer) : send_notice(m, peer, FRAME_STORED, 0);
    if (has_to_be_brought(m, peer->on))
        return send_from_device(m, peer);
    if (m->bytes <= TRANSPORT_INLINE)
        return send_inline(m, peer);
    /* If the link cannot map memory, the receiver gets a referenced message into its dst. It has no
     * buffer into which it could get an input of a fold. */
    const bool may_refer = !m->by_value && m->done == 0 && m->bytes >= REFERENCE_MIN_BYTES &&
                           (m->placed || !channel_transfers(peer->on));
    const uint64_t ref = may_refer ? channel_ref(m->work, peer->on, m->data, m->bytes) : 0;
    return ref != 0 ? send_notice(m, peer, FRAME_REF, ref) : send_segments(m, peer, m->bytes);
}

ring_status channel_send(posted *m)
{
    const channel *c = m->work->peers[m->peer].on;
    return c->sent == m->number ? send_message(m) : RING_IN_PROGRESS;
}

ring_status channel_send_ahead(posted *m, size_t ready)
{
    work_peer *peer = &m->work->peers[m->peer];
    const size_t end = min_size(ready, m->bytes - 1) / m->segment * m->segment;
    if (peer->on->sent != m->number || m->done >= end)
        return RING_OK;
    const ring_status status = send_segments(m, peer, end);
    return status == RING_IN_PROGRESS ? RING_OK : status;
}

/* Inserts by message number, usually at the end of the list. */
static void insert(channel *c, posted *p)
{
    posted **at = &c->posts;
    while (*at != NULL && (*at)->number < p->number)
        at = &(*at)->next;
    ring_assert(p->number >= c->sent && (*at == NULL || (*at)->number > p->number));
    p->next = *at;
    *at = p;
    channel_activate(c);
}

ring_status channel_post(posted *message)
{
    channel *c = message->work->peers[message->peer].on;
    const ring_status status = message->by != NULL ? RING_IN_PROGRESS : channel_send(message);
    if (status != RING_IN_PROGRESS)
        return status;
    posted *kept = c->comm->memory.posts;
    if (kept != NULL)
        c->comm->memory.posts = kept->next;
    else
        kept = malloc(sizeof *kept);
    if (kept == NULL)
        return fail(RING_ERR_MEMORY, "out of memory while queueing a message to rank %d", c->rank);
    *kept = *message;
    kept->work->step.posted++;
    insert(c, kept);
    return RING_OK;
}

ring_status channel_flush(channel *c, bool *moved)
{
    while (c->posts != NULL) {
        posted *p = c->posts;
        const size_t before = p->done;
        const ring_status status = channel_send(p);
        *moved |= status == RING_OK || p->done != before;
        RING_TRY(status);
        c->posts = p->next;
        p->work->step.posted--;
        keep_spare(c->comm, p);
    }
    return RING_OK;
}

ring_status channel_reserve(channel *c, uint64_t number, void **room)
{
    if (c->sent != number)
        return RING_IN_PROGRESS;
    *room = c->link->transport->reserve(c->link);
    if (*room != NULL)
        return RING_OK;
    RING_TRY(c->link->transport->progress(c->link)); /* fails if the link is broken, not full */
    return RING_IN_PROGRESS;
}

ring_status channel_send_room(work *w, int32_t to, uint64_t number, const void *room, size_t done,
                              size_t bytes, size_t segment, size_t total)
{
    const bool last = done + bytes == total;
    work_peer *peer = &w->peers[to];
    transport_frame frame;
    if (last && done == 0 && bytes <= TRANSPORT_INLINE) {
        frame = frame_of(w, number);
        frame.length = (uint8_t)bytes;
        memcpy(frame.data, room, bytes);
    } else {
        frame = long_frame(w, peer, number, 0, bytes, total);
        frame.ext.segment = (uint32_t)(done / segment);
    }
    const ring_status status = send_frame(w, peer, &frame, room, true);
    if (status == RING_IN_PROGRESS)
        return fail(RING_ERR_INTERNAL,
                    "the link to rank %d has no room for a frame for which it had reserved room",
                    peer->on->rank);
    RING_TRY(status);
    count_sent(w, peer, bytes, last);
    return RING_OK;
}

bool channel_is_free(const work *w, int32_t index, uint64_t messages)
{
    const work_peer *peer = &w->peers[index];
    const transport_link *l = peer->on->link;
    const uint64_t end = peer->out_base + messages;
    if (peer->on->sent < end)
        return false;
    return peer->first_ref < end ? l->transport->released(l) >= end
                                 : l->transport->flushed(l) >= peer->flush_mark;
}

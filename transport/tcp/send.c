/* SPDX-License-Identifier: Apache-2.0
 * Frames to the kernel. Payloads are never copied here: the queue holds where they lie, and
 * one sendmsg() gathers all that is pending. A frame is flushed when the kernel has it. */
#include "tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { PARTS = 3 /* header, payload, padding */ };

static const unsigned char zeros[TCP_ALIGN];

/** Parts of frames under construction for one sendmsg(). */
typedef struct gather {
    struct iovec parts[TCP_QUEUE * PARTS];
    size_t count;
    size_t skip; /* bytes that the kernel has already */
} gather;

static void gather_add(gather *g, const void *data, size_t bytes)
{
    const size_t skipped = min_size(g->skip, bytes);
    g->skip -= skipped;
    if (bytes > skipped)
        g->parts[g->count++] = (struct iovec){.iov_base = (char *)data + skipped,
                                              .iov_len = bytes - skipped};
}

static void gather_frame(gather *g, const tcp_out *out)
{
    gather_add(g, &out->frame, sizeof out->frame);
    gather_add(g, out->payload, out->bytes);
    gather_add(g, zeros, tcp_padded(out->bytes) - out->bytes);
}

static tcp_out *frame_at(tcp_link *l, uint64_t number)
{
    return &l->queue[number % TCP_QUEUE];
}

/* Crosses off what the kernel took. */
static void count_handed(tcp_link *l, size_t bytes)
{
    l->handed += bytes;
    while (l->flushed < l->head.frames_sent) {
        const tcp_out *out = frame_at(l, l->flushed);
        const size_t whole = sizeof out->frame + tcp_padded(out->bytes);
        if (l->handed < whole)
            break;
        l->handed -= whole;
        l->flushed++;
        l->rooms_flushed += out->in_room;
    }
}

/* RING_IN_PROGRESS: the kernel takes no more now. */
static ring_status hand_over(tcp_link *l)
{
    gather g = {.skip = l->handed};
    for (uint64_t n = l->flushed; n < l->head.frames_sent; n++)
        gather_frame(&g, frame_at(l, n));
    const struct msghdr message = {.msg_iov = g.parts, .msg_iovlen = g.count};
    const ssize_t took = sendmsg(l->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (took >= 0) {
        count_handed(l, (size_t)took);
        return RING_OK;
    }
    if (errno == EAGAIN || errno == EINTR)
        return RING_IN_PROGRESS;
    return tcp_break(l, fail(RING_ERR_PEER, "sending to rank %d over tcp: %m", l->head.peer));
}

ring_status tcp_progress(transport_link *link)
{
    tcp_link *l = (tcp_link *)link;
    RING_TRY(tcp_verdict(l));
    ring_status status = RING_OK;
    while (status == RING_OK && l->flushed < l->head.frames_sent)
        status = hand_over(l);
    return status == RING_OK || status == RING_IN_PROGRESS ? tcp_watch(l) : status;
}

static bool queue_is_full(const tcp_link *l)
{
    return l->head.frames_sent - l->flushed == TCP_QUEUE;
}

static unsigned char *next_room(const tcp_link *l)
{
    return l->rooms + l->rooms_sent % TCP_ROOMS * TRANSPORT_SEGMENT;
}

void *tcp_reserve(transport_link *link)
{
    const tcp_link *l = (const tcp_link *)link;
    const bool taken = l->rooms_sent - l->rooms_flushed == TCP_ROOMS;
    return l->broken != RING_OK || taken || queue_is_full(l) ? NULL : next_room(l);
}

static void enqueue(tcp_link *l, const transport_frame *frame, const void *payload)
{
    tcp_out *out = frame_at(l, l->head.frames_sent);
    out->frame = *frame;
    out->frame.turn = (uint32_t)l->head.frames_sent;
    out->payload = payload;
    out->bytes = tcp_carried(frame);
    out->in_room = payload == next_room(l);
    l->rooms_sent += out->in_room;
    l->head.frames_sent++;
    l->head.bytes_sent += out->bytes;
}

ring_status tcp_send(transport_link *link, const transport_frame *frame, const void *payload)
{
    tcp_link *l = (tcp_link *)link;
    RING_TRY(tcp_verdict(l));
    if (tcp_carried(frame) > TRANSPORT_SEGMENT)
        return tcp_break(l, fail(RING_ERR_INTERNAL, "a frame of %zu bytes is over the limit of %d",
                                 tcp_carried(frame), TRANSPORT_SEGMENT));
    if (queue_is_full(l))
        RING_TRY(tcp_progress(link));
    if (queue_is_full(l))
        return RING_IN_PROGRESS;
    enqueue(l, frame, payload);
    return tcp_progress(link);
}

uint64_t tcp_flushed(const transport_link *link)
{
    return ((const tcp_link *)link)->flushed;
}

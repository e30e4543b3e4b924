/* SPDX-License-Identifier: Apache-2.0
 * Passes frames to the kernel, directly from the caller's memory as long as the kernel accepts
 * them. Other frames are queued in the backlog, from which one sendmsg() sends many. A frame is
 * flushed when the kernel has accepted all of it. */
#include "tcp.h"
#include "tcp_failure.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { HEADER = sizeof(transport_frame) };

static const unsigned char zeros[TCP_ALIGN];

/* Sends the parts. @param[out] took  number of accepted bytes; 0 if the kernel accepts no more
 * now. */
static ring_status hand_parts(tcp_link *l, struct iovec *parts, size_t count, size_t *took)
{
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};
    const ssize_t bytes = l->cipher != NULL ? tcp_cipher_send(l->cipher, l->fd, parts, count)
                                            : sendmsg(l->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    *took = bytes > 0 ? (size_t)bytes : 0;
    if (bytes >= 0 || errno == EAGAIN || errno == EINTR)
        return RING_OK;
    return tcp_break(l, fail(RING_ERR_PEER, "sending to rank %d over tcp: %m", l->head.peer));
}

/* ---- The backlog ------------------------------------------------------------------- */

static bool is_pending(const tcp_link *l)
{
    return l->backlog.frames > 0;
}

ring_status tcp_progress(transport_link *link)
{
    tcp_link *l = (tcp_link *)link;
    struct iovec parts[TCP_PARTS];
    size_t took = 1, whole;
    RING_TRY(tcp_verdict(l));
    while (took > 0 && is_pending(l)) {
        const size_t count = tcp_backlog_gather(&l->backlog, l->flushed, l->handed, parts);
        RING_TRY(hand_parts(l, parts, count, &took));
        l->handed += took;
        while (is_pending(l) &&
               (whole = tcp_backlog_drop(&l->backlog, l->flushed, l->handed)) > 0) {
            l->handed -= whole;
            l->flushed++;
        }
    }
    return tcp_watch(l);
}

/* ---- Sending ----------------------------------------------------------------------- */

/** A frame that tcp_send() is sending. */
typedef struct outgoing {
    transport_frame frame;
    const unsigned char *payload;
    size_t bytes;  /* size of the payload                             */
    bool in_room;  /* the payload is in the room that reserve() gave  */
    tcp_need need; /* the room that the frame would need in the backlog */
} outgoing;

static bool fits(const tcp_link *l, const outgoing *out)
{
    return out->in_room || tcp_backlog_fits(&l->backlog, &out->need);
}

static ring_status refuse(tcp_link *l, tcp_need need)
{
    l->refused = true;
    l->wanted = need;
    return RING_IN_PROGRESS;
}

bool tcp_has_room(const tcp_link *l)
{
    return l->refused && tcp_backlog_fits(&l->backlog, &l->wanted);
}

/* Queues the frame. fits() must have been true. */
static ring_status leave_in_backlog(tcp_link *l, const outgoing *out)
{
    tcp_backlog *b = &l->backlog;
    const ring_status status = tcp_backlog_open(b);
    if (status != RING_OK)
        return tcp_break(l, status);
    const size_t at = out->in_room ? l->room : tcp_backlog_place(b, out->need.bytes);
    unsigned char *to = b->bytes + at;
    memcpy(to, &out->frame, HEADER);
    if (out->need.loan) {
        tcp_backlog_lend(b, l->head.frames_sent, out->payload);
    } else if (out->bytes > 0) {
        if (!out->in_room)
            memcpy(to + HEADER, out->payload, out->bytes);
        memset(to + HEADER + out->bytes, 0, tcp_padded(out->bytes) - out->bytes);
    }
    tcp_backlog_add(b, at, out->need.bytes);
    return RING_OK;
}

/* Sends a frame while the backlog is empty. If the kernel accepts only part of the frame, queues
 * it. */
static ring_status send_straight(tcp_link *l, const outgoing *out)
{
    const size_t padding = tcp_padded(out->bytes) - out->bytes;
    const size_t whole = HEADER + out->bytes + padding;
    struct iovec parts[] = {{(void *)(uintptr_t)&out->frame, HEADER},
                            {(void *)(uintptr_t)out->payload, out->bytes},
                            {(void *)(uintptr_t)zeros, padding}};
    size_t took;
    RING_TRY(hand_parts(l, parts, out->bytes > 0 ? 3 : 1, &took));
    if (took < whole) {
        l->handed = took;
        return leave_in_backlog(l, out);
    }
    l->flushed++;
    return RING_OK;
}

ring_status tcp_send(transport_link *link, const transport_frame *frame, const void *payload,
                     bool copy)
{
    tcp_link *l = (tcp_link *)link;
    RING_TRY(tcp_verdict(l));
    if (!transport_is_sound(frame, TCP_FLAGS))
        return tcp_break(l, fail(RING_ERR_INTERNAL,
                                 "tcp cannot carry this frame to rank %d (flags 0x%x)",
                                 l->head.peer, frame->flags));
    outgoing out = {.frame = *frame, .payload = payload, .bytes = transport_behind(frame)};
    out.in_room = l->reserved && payload == l->backlog.bytes + l->room + HEADER;
    out.need.loan = !copy && !out.in_room && out.bytes >= TCP_LOAN_LEAST;
    out.need.bytes = HEADER + (out.need.loan ? 0 : tcp_padded(out.bytes));
    if (!fits(l, &out))
        RING_TRY(tcp_progress(link));
    if (!fits(l, &out))
        return refuse(l, out.need);
    tcp_seal(&out.frame, l->head.frames_sent, payload, l->checksum);
    const bool straight = !is_pending(l);
    RING_TRY(straight ? send_straight(l, &out) : leave_in_backlog(l, &out));
    l->head.frames_sent++;
    l->head.bytes_sent += transport_carried(frame);
    l->reserved = l->refused = false;
    return straight ? tcp_watch(l) : tcp_progress(link);
}

void *tcp_reserve(transport_link *link)
{
    tcp_link *l = (tcp_link *)link;
    const tcp_need need = {.bytes = HEADER + TRANSPORT_SEGMENT};
    if (l->broken != RING_OK)
        return NULL;
    if (!l->reserved && !tcp_backlog_fits(&l->backlog, &need)) {
        (void)refuse(l, need);
        return NULL;
    }
    const ring_status status = tcp_backlog_open(&l->backlog);
    if (status != RING_OK) {
        (void)tcp_break(l, status);
        return NULL;
    }
    if (!l->reserved)
        l->room = tcp_backlog_place(&l->backlog, need.bytes);
    l->reserved = true;
    return l->backlog.bytes + l->room + HEADER;
}

uint64_t tcp_flushed(const transport_link *link)
{
    return ((const tcp_link *)link)->flushed;
}

/* Frames never refer to memory, so there is nothing to release. */
void tcp_release(transport_link *link, uint64_t messages)
{
    (void)link, (void)messages;
}

uint64_t tcp_released(const transport_link *link)
{
    (void)link;
    return UINT64_MAX;
}

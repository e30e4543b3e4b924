/* SPDX-License-Identifier: Apache-2.0
 *
 * tcp: a link over one non-blocking stream socket.
 *
 * On the wire a frame is its header, its payload and zeros up to the next multiple of 64
 * bytes. So every header and every payload starts at a multiple of 64 of the stream, and
 * bytes that are read to the same place modulo 64 of an aligned buffer are aligned there.
 * `turn` counts the frames: a lost or doubled byte shows at the next header.
 */
#ifndef RING_TCP_H
#define RING_TCP_H

#include "table.h"
#include "transport.h"

enum {
    TCP_ALIGN = 64,
    TCP_QUEUE = 16, /* frames on their way to the kernel                              */
    TCP_ROOMS = 4,  /* of them, those that reserve() gave room for                    */
    /* Whole frames fit without moving the rest of a frame to the front. */
    TCP_BUFFER = 4 * (TRANSPORT_SEGMENT + (int)sizeof(transport_frame)),
    TCP_TEXT_MAX = 256
};

/** A frame that send() took. */
typedef struct tcp_out {
    transport_frame frame;
    const unsigned char *payload;
    size_t bytes; /* carried */
    bool in_room; /* payload lies in a room of ours */
} tcp_out;

typedef struct tcp_link {
    transport_link head;
    int fd;
    ring_status broken; /* what ended the link */
    char text[TCP_TEXT_MAX];
    double peer_timeout;         /* 0: the peer's silence is no matter                  */
    double looked, silent_since; /* last look at the connection; since when nothing of what
                                    is under way was acknowledged                       */

    int wake;        /* epoll over fd                                             */
    uint32_t events; /* what it watches now                                       */
    uint64_t told;   /* flushed frames that arm() has told of                     */

    tcp_out queue[TCP_QUEUE]; /* frame n in [n % TCP_QUEUE]; flushed <= n < frames_sent */
    uint64_t flushed;         /* frames that the kernel has whole                       */
    size_t handed;            /* bytes of frame `flushed` that the kernel has           */
    uint64_t rooms_sent, rooms_flushed;
    unsigned char *rooms;

    unsigned char *buffer; /* of received bytes; [first, end) are not used up         */
    size_t first, end;
    size_t skip;           /* bytes before the next header that nobody wants          */
    transport_frame frame; /* the oldest frame, its header is out of the buffer       */
    bool has_frame;
    bool shown;    /* peek() has given its payload                                    */
    bool pulling;  /* pull() has begun                                                */
    size_t pulled; /* bytes that pull() has brought                                   */
    bool greedy;   /* the latest payload was used in the buffer: read far ahead       */
} tcp_link;

/** @return payload bytes on the wire behind this header. */
static inline size_t tcp_carried(const transport_frame *frame)
{
    return frame->flags == 0 ? (size_t)frame->bytes : 0;
}

static inline size_t tcp_padded(size_t bytes)
{
    return (bytes + TCP_ALIGN - 1) & ~(size_t)(TCP_ALIGN - 1);
}

/** Breaks the link by a failure of this thread that was just told by fail(). */
ring_status tcp_break(tcp_link *l, ring_status status);
/** @return RING_OK, or tells again what broke the link. */
ring_status tcp_verdict(const tcp_link *l);

/* ---- send.c ---- */
ring_status tcp_send(transport_link *link, const transport_frame *frame, const void *payload);
void *tcp_reserve(transport_link *link);
uint64_t tcp_flushed(const transport_link *link);
/** Hands the kernel what it takes of the queue. What comes in waits there for peek(). */
ring_status tcp_progress(transport_link *link);

/* ---- receive.c ---- */
ring_status tcp_peek(transport_link *link, const transport_frame **frame, const void **payload);
ring_status tcp_pull(transport_link *link, void *dst);
void tcp_consume(transport_link *link);
/** @return true if the buffer holds what peek() has not shown yet. */
bool tcp_has_news(const tcp_link *l);
/** @return true if the oldest frame is here and shown as a whole. */
bool tcp_is_served(const tcp_link *l);

/* ---- wake.c ---- */
ring_status tcp_wake_open(tcp_link *l);
int tcp_wake_fd(const transport_link *link);
bool tcp_arm(transport_link *link, bool wants_send);
void tcp_disarm(transport_link *link);

/* ---- watch.c ---- */
/** Has the kernel ask a silent peer's kernel for a sign of life. */
void tcp_watch_open(tcp_link *l, double peer_timeout);
/** Breaks the link when the peer's kernel has been silent too long; to be called while
 *  somebody waits. */
ring_status tcp_watch(tcp_link *l);

#endif

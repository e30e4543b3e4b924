/* SPDX-License-Identifier: Apache-2.0
 *
 * tcp: implements a link over one non-blocking stream socket.
 *
 * On the wire a frame is its header, followed by its payload and by zeros up to the next multiple
 * of 64 bytes. So every header and every payload starts at a multiple of 64 in the stream. The
 * receiver stores each byte of the stream at an offset in its buffer that is equal modulo 64, so
 * headers and payloads are also aligned in memory.
 *
 * With checksums, `stamp` is the checksum of the rest of the header and of the frame's number, and
 * `ext.src_ref`, which tcp does not need otherwise, is the checksum of the payload. Lengths and
 * payloads are checked before use, so any corruption of them breaks the link. Without checksums,
 * `stamp` is the frame's number, so a lost or duplicated byte is detected at the next header. With
 * encryption, the stream consists of records (cipher.h), and needs no checksums.
 */
#ifndef RING_TCP_H
#define RING_TCP_H

#include "cipher.h"
#include "table.h"
#include "transport.h"

#include <sys/uio.h>

enum {
    TCP_ALIGN = 64,
    TCP_FLAGS = FRAME_LONG, /* allowed flags of frames: references are not possible  */
    TCP_LOANS = 16,         /* how many payloads may stay in the sender's memory     */
    /* Bytes. Shorter payloads are copied, so TCP_LOANS loans suffice for the guaranteed window. */
    TCP_LOAN_LEAST = TRANSPORT_WINDOW_BYTES / TCP_LOANS,
    /* Bytes of the backlog: the guaranteed window (five segments with headers), and unused space
     * at both ends of the free room, where a long frame may not fit. */
    TCP_BACKLOG = 9 * TRANSPORT_SEGMENT,
    /* Bytes of the receive buffer: several of the longest frames, so that a part of a frame seldom
     * has to be moved to the front. */
    TCP_BUFFER = 4 * (TRANSPORT_SEGMENT + (int)sizeof(transport_frame)),
    TCP_PARTS = 3 * TCP_LOANS + 2, /* a header, a payload and padding for each loan, and the rest */
    TCP_TEXT_MAX = 256
};

/** A loan: the payload of frame number `frame` stays in the sender's memory until it is sent. */
typedef struct tcp_loan {
    uint64_t frame;
    const unsigned char *payload;
} tcp_loan;

/** The queue of frames that send() has accepted and the kernel has not, oldest first. Each frame is
 *  contiguous: its header and padded payload, or only its header if the payload is lent. */
typedef struct tcp_backlog {
    unsigned char *bytes; /* [TCP_BACKLOG], NULL until first needed                          */
    uint64_t frames;      /* number of queued frames                                         */
    size_t first, end;    /* frames are in [first, end) or, if wrapped, in [first, wrap) and
                             [0, end) */
    size_t wrap;
    bool wrapped;
    tcp_loan loans[TCP_LOANS]; /* loan i is in [i % TCP_LOANS], for returned <= i < lent     */
    uint64_t lent, returned;   /* numbers of loans made and ended                            */
} tcp_backlog;

/** The room that a frame needs in the backlog. */
typedef struct tcp_need {
    size_t bytes;
    bool loan; /* the payload is lent */
} tcp_need;

typedef struct tcp_link {
    transport_link head;
    int fd;
    ring_status broken;      /* RING_OK, or the status of the failure that broke the link */
    char text[TCP_TEXT_MAX]; /* the text of that failure                            */
    bool checksum;
    tcp_cipher *cipher;  /* NULL: the stream is not encrypted                      */
    double peer_timeout; /* seconds; 0: the peer may be silent for ever            */
    double looked;       /* when tcp_watch() last checked                          */
    double silent_since; /* the peer's kernel has acknowledged nothing since then, although bytes
                            or probes were in flight */

    int wake;          /* an epoll descriptor that watches fd                       */
    uint32_t events;   /* the events that `wake` watches for at present             */
    uint64_t notified; /* number of flushed frames at the last arm() with wants_send */

    tcp_backlog backlog; /* frames number flushed to frames_sent - 1              */
    uint64_t flushed;    /* number of frames that the kernel has completely       */
    size_t handed;       /* bytes of frame number `flushed` that the kernel has   */
    bool reserved;       /* reserve() has returned a room that is not used yet    */
    size_t room;         /* offset in the backlog of the frame with that room     */
    bool refused;        /* there was no room for the last frame                  */
    tcp_need wanted;     /* the room that it needed                               */

    unsigned char *buffer; /* received bytes; [first, end) are not yet consumed       */
    size_t first, end;
    size_t skip;           /* padding bytes before the next header                    */
    transport_frame frame; /* header of the oldest frame, copied from the buffer      */
    uint64_t payload_sum;  /* checksum of its payload, if checksums are on            */
    bool has_frame;        /* `frame` is valid                                        */
    bool shown;            /* peek() has returned its payload                         */
    bool pulling;          /* pull() has begun                                        */
    size_t pulled;         /* bytes that pull() has stored                            */
    bool greedy;           /* read far ahead, because the last payload was used in the buffer */
} tcp_link;

/** @return @p bytes rounded up to a multiple of TCP_ALIGN. */
static inline size_t tcp_padded(size_t bytes)
{
    return (bytes + TCP_ALIGN - 1) & ~(size_t)(TCP_ALIGN - 1);
}

/* ---- checksum.c ---- */
/** @return the checksum of a payload. */
uint64_t tcp_payload_sum(const void *payload, size_t bytes);
/** @return the `stamp` of frame @p number, whose other fields are set. */
uint32_t tcp_stamp(const transport_frame *frame, uint64_t number, bool checksum);
/** Completes the header of frame @p number, whose other fields are set. @param payload  the bytes
 *  that follow the header. */
void tcp_seal(transport_frame *frame, uint64_t number, const void *payload, bool checksum);

/* ---- backlog.c ---- */
/** Allocates the buffer at the first call. @return RING_OK or RING_ERR_MEMORY. */
ring_status tcp_backlog_open(tcp_backlog *b);
/** @return true if there is room for a frame with these needs. */
bool tcp_backlog_fits(const tcp_backlog *b, const tcp_need *need);
/** @return the offset in the buffer for the next frame of @p bytes, which must fit. */
size_t tcp_backlog_place(const tcp_backlog *b, size_t bytes);
/** Adds the frame of @p bytes that the caller has written to offset @p at. */
void tcp_backlog_add(tcp_backlog *b, size_t at, size_t bytes);
/** Records that the payload of frame number @p frame stays in the sender's memory. */
void tcp_backlog_lend(tcp_backlog *b, uint64_t frame, const void *payload);
/** Collects the bytes of the queued frames for one sendmsg(), without the first @p skip bytes.
 *  @param frame  number of the oldest queued frame. @return the number of parts. */
size_t tcp_backlog_gather(const tcp_backlog *b, uint64_t frame, size_t skip,
                          struct iovec parts[TCP_PARTS]);
/** Drops the oldest frame, number @p frame, if the kernel has all of it.
 *  @param handed  bytes of this frame and later ones that the kernel has.
 *  @return the frame's bytes on the wire; 0 if the kernel has not all of them. */
size_t tcp_backlog_drop(tcp_backlog *b, uint64_t frame, size_t handed);

/* ---- send.c: calls of transport.h, and: ---- */
ring_status tcp_send(transport_link *link, const transport_frame *frame, const void *payload,
                     bool copy);
void *tcp_reserve(transport_link *link);
uint64_t tcp_flushed(const transport_link *link);
void tcp_release(transport_link *link, uint64_t messages);
uint64_t tcp_released(const transport_link *link);
/** @return true if send() would now accept the frame that it refused last. */
bool tcp_has_room(const tcp_link *l);
/** Passes as much of the backlog to the kernel as it accepts. Received bytes stay in the kernel
 *  until peek(). */
ring_status tcp_progress(transport_link *link);

/* ---- receive.c: calls of transport.h, and: ---- */
ring_status tcp_peek(transport_link *link, const transport_frame **frame, const void **payload);
ring_status tcp_pull(transport_link *link, void *dst);
void tcp_consume(transport_link *link);
const _Atomic uint32_t *tcp_news(const transport_link *link, uint32_t *value);
/** @return true if the buffer or the cipher holds bytes that peek() has not returned yet. */
bool tcp_has_news(const tcp_link *l);
/** @return true if peek() or pull() has returned the whole oldest frame. */
bool tcp_is_served(const tcp_link *l);

/* ---- wake.c: calls of transport.h, and: ---- */
/** Creates the epoll descriptor on which callers sleep. */
ring_status tcp_wake_open(tcp_link *l);
int tcp_wake_fd(const transport_link *link);
bool tcp_arm(transport_link *link, bool wants_send);
void tcp_disarm(transport_link *link);

/* ---- watch.c ---- */
/** Makes the kernel send keepalive probes when the connection is idle, and stores the timeout.
 *  @param peer_timeout  as in transport_peer. */
void tcp_watch_open(tcp_link *l, double peer_timeout);
/** Breaks the link if the peer's kernel has been silent for peer_timeout. Called often while a
 *  caller waits. */
ring_status tcp_watch(tcp_link *l);

#endif

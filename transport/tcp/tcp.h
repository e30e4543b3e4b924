/* SPDX-License-Identifier: Apache-2.0
 *
 * tcp: implements a link over one non-blocking stream socket.
 *
 * On the wire a frame is its header, followed by its payload and by zeros up to the next multiple
 * of 64 bytes. So every header and every payload starts at a multiple of 64 in the stream, and if
 * the buffer is aligned and bytes are read to their stream offset modulo 64, they are aligned too.
 *
 * With checksums, `stamp` is the checksum of the rest of the header and of the frame's number, and
 * `ext.src_ref`, which tcp does not need otherwise, is the checksum of the payload. Lengths and
 * payloads are checked before use, so any corruption of them breaks the link. Without checksums,
 * `stamp` counts the frames: a lost or duplicated byte is noticed at the next header. With
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
    TCP_FLAGS = FRAME_LONG, /* allowed flags of frames: references are not possible */
    TCP_LOANS = 16,         /* payloads that may stay in the sender's memory        */
    TCP_LOAN_LEAST = TRANSPORT_WINDOW_BYTES /
                     TCP_LOANS, /* bytes; TCP_LOANS of them fill the window */
    /* The window, and segments to spare at both ends of the room, where a long frame may not fit.
     */
    TCP_BACKLOG = 9 * TRANSPORT_SEGMENT,
    /* Whole frames fit without moving part of a frame to the front. */
    TCP_BUFFER = 4 * (TRANSPORT_SEGMENT + (int)sizeof(transport_frame)),
    TCP_PARTS = 3 * TCP_LOANS + 2,
    TCP_TEXT_MAX = 256
};

/** A payload of frame number `frame` that was not copied. */
typedef struct tcp_loan {
    uint64_t frame;
    const unsigned char *payload;
} tcp_loan;

/** Frames that send() has accepted and the kernel has not, oldest first, each contiguous: the
 * header and the padded payload, or only the header if the payload was not copied. */
typedef struct tcp_backlog {
    unsigned char *bytes; /* [TCP_BACKLOG], NULL until first needed                      */
    uint64_t frames;
    size_t first, end; /* frames are in [first, end), or in [first, wrap) and [0, end) */
    size_t wrap;
    bool wrapped;
    tcp_loan loans[TCP_LOANS]; /* loan i is in [i % TCP_LOANS]; returned <= i < lent      */
    uint64_t lent, returned;
} tcp_backlog;

/** The room that a frame needs in the backlog. */
typedef struct tcp_need {
    size_t bytes;
    bool loan;
} tcp_need;

typedef struct tcp_link {
    transport_link head;
    int fd;
    ring_status broken; /* RING_OK, or the failure that broke the link */
    char text[TCP_TEXT_MAX];
    bool checksum;
    tcp_cipher *cipher;          /* NULL: the stream is not encrypted                   */
    double peer_timeout;         /* s; 0: the peer may be silent for ever               */
    double looked, silent_since; /* time of the last check; time since which no byte in flight has
                                    been acknowledged */

    int wake;          /* an epoll descriptor that watches fd                       */
    uint32_t events;   /* the events that it watches for now                        */
    uint64_t notified; /* flushed frames at the last arm()                          */

    tcp_backlog backlog; /* frame n, flushed <= n < frames_sent                   */
    uint64_t flushed;    /* frames that the kernel has whole                      */
    size_t handed;       /* bytes of frame `flushed` that the kernel has          */
    bool reserved;       /* reserve() has returned room in the frame at:          */
    size_t room;         /* a place in the backlog                                */
    bool refused;        /* the last frame found no room, and needs:              */
    tcp_need wanted;

    unsigned char *buffer; /* received bytes; those in [first, end) are not yet used  */
    size_t first, end;
    size_t skip;           /* padding bytes before the next header                    */
    transport_frame frame; /* header of the oldest frame, copied from the buffer      */
    uint64_t payload_sum;  /* checksum of its payload, if checksums are on            */
    bool has_frame;        /* `frame` is valid                                        */
    bool shown;            /* peek() has returned its payload                         */
    bool pulling;          /* pull() has begun                                        */
    size_t pulled;         /* bytes that pull() has stored                            */
    bool greedy;           /* the last payload was used in the buffer: read far ahead */
} tcp_link;

static inline size_t tcp_padded(size_t bytes)
{
    return (bytes + TCP_ALIGN - 1) & ~(size_t)(TCP_ALIGN - 1);
}

/* ---- checksum.c ---- */
uint64_t tcp_payload_sum(const void *payload, size_t bytes);
/** @return the `stamp` of frame @p number, whose other fields are set. */
uint32_t tcp_stamp(const transport_frame *frame, uint64_t number, bool checksum);
/** Completes the header of frame @p number, whose other fields are set. @param payload  the bytes
 *  that follow the header. */
void tcp_seal(transport_frame *frame, uint64_t number, const void *payload, bool checksum);

/* ---- backlog.c ---- */
/** Allocates the buffer at the first call. @return RING_OK or RING_ERR_MEMORY. */
ring_status tcp_backlog_open(tcp_backlog *b);
bool tcp_backlog_fits(const tcp_backlog *b, const tcp_need *need);
/** @return the place of the next @p bytes, which must fit. */
size_t tcp_backlog_place(const tcp_backlog *b, size_t bytes);
/** Adds a frame that was written to @p at. */
void tcp_backlog_add(tcp_backlog *b, size_t at, size_t bytes);
void tcp_backlog_lend(tcp_backlog *b, uint64_t frame, const void *payload);
/** Collects the bytes of the frames from number @p frame on, without the first @p skip bytes, for
 *  one sendmsg(). @return the number of parts. */
size_t tcp_backlog_gather(const tcp_backlog *b, uint64_t frame, size_t skip,
                          struct iovec parts[TCP_PARTS]);
/** Drops the oldest frame, number @p frame, if it is complete with the @p handed bytes that the
 *  kernel has of it and its successors. @return its bytes on the wire; 0: not complete. */
size_t tcp_backlog_drop(tcp_backlog *b, uint64_t frame, size_t handed);

/* ---- send.c ---- */
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

/* ---- receive.c ---- */
ring_status tcp_peek(transport_link *link, const transport_frame **frame, const void **payload);
ring_status tcp_pull(transport_link *link, void *dst);
void tcp_consume(transport_link *link);
const _Atomic uint32_t *tcp_news(const transport_link *link, uint32_t *value);
/** @return true if the buffer or the cipher holds bytes that peek() has not returned yet. */
bool tcp_has_news(const tcp_link *l);
/** @return true if peek() or pull() has returned the whole oldest frame. */
bool tcp_is_served(const tcp_link *l);

/* ---- wake.c ---- */
ring_status tcp_wake_open(tcp_link *l);
int tcp_wake_fd(const transport_link *link);
bool tcp_arm(transport_link *link, bool wants_send);
void tcp_disarm(transport_link *link);

/* ---- watch.c ---- */
/** Makes the kernel probe the peer's kernel when the connection is silent. */
void tcp_watch_open(tcp_link *l, double peer_timeout);
/** Breaks the link if the peer's kernel has been silent too long. Called while a caller waits. */
ring_status tcp_watch(tcp_link *l);

#endif

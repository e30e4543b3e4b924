/* SPDX-License-Identifier: Apache-2.0
 *
 * tcp: a link over one non-blocking stream socket.
 *
 * On the wire a frame is its header, the payload behind it and zeros up to the next multiple of 64
 * bytes. So every header and every payload starts at a multiple of 64 of the stream, and bytes that
 * are read to the same offset modulo 64 of an aligned buffer are aligned there.
 *
 * With checksums, `stamp` is one of the rest of the header and of the frame's number, and
 * `ext.src_ref`, which is not needed otherwise here, is one of the payload behind it. Lengths and
 * payloads are checked before use, so any change of them ends the link. Without, `stamp` counts the
 * frames: a lost or doubled byte shows at the next header. Encrypted, the stream goes as records
 * (cipher.h), and needs no checksums.
 */
#ifndef RING_TCP_H
#define RING_TCP_H

#include "cipher.h"
#include "table.h"
#include "transport.h"

#include <sys/uio.h>

enum {
    TCP_ALIGN = 64,
    TCP_FLAGS = FRAME_LONG, /* of frames: references are not possible */
    TCP_LOANS = 16,         /* payloads that stay in their senders' memory */
    TCP_LOAN_LEAST = TRANSPORT_WINDOW_BYTES / TCP_LOANS, /* bytes: as many fill the window   */
    /* Window and segments to spare at both ends of the room, where a long frame may not fit. */
    TCP_BACKLOG = 9 * TRANSPORT_SEGMENT,
    /* Whole frames fit without moving the rest of a frame to the front. */
    TCP_BUFFER = 4 * (TRANSPORT_SEGMENT + (int)sizeof(transport_frame)),
    TCP_PARTS = 3 * TCP_LOANS + 2,
    TCP_TEXT_MAX = 256
};

/** A payload that is not copied, of frame number @p frame. */
typedef struct tcp_loan {
    uint64_t frame;
    const unsigned char *payload;
} tcp_loan;

/** Frames that send() took and the kernel has not, oldest first, each in one piece: headers and
 *  padded payloads, but of lent payloads only the header. */
typedef struct tcp_backlog {
    unsigned char *bytes; /* [TCP_BACKLOG], NULL until first needed                      */
    uint64_t frames;
    size_t first, end; /* frames lie in [first, end), or in [first, wrap) and [0, end) */
    size_t wrap;
    bool wrapped;
    tcp_loan loans[TCP_LOANS]; /* loan i in [i % TCP_LOANS]; returned <= i < lent         */
    uint64_t lent, returned;
} tcp_backlog;

/** A frame's need of the backlog. */
typedef struct tcp_need {
    size_t bytes;
    bool loan;
} tcp_need;

typedef struct tcp_link {
    transport_link head;
    int fd;
    ring_status broken; /* the reason why it is broken */
    char text[TCP_TEXT_MAX];
    bool checksum;
    tcp_cipher *cipher;          /* NULL: bytes go as they are                          */
    double peer_timeout;         /* 0: the peer's silence does not count */
    double looked, silent_since; /* last check of the connection; since when no byte under way was
                                    acknowledged */

    int wake;          /* epoll over fd                                             */
    uint32_t events;   /* those that it watches now */
    uint64_t notified; /* flushed frames at the last arm() */

    tcp_backlog backlog; /* frame n, flushed <= n < frames_sent                   */
    uint64_t flushed;    /* frames that the kernel has whole                      */
    size_t handed;       /* bytes of frame `flushed` that the kernel has          */
    bool reserved;       /* reserve() gave:                                       */
    size_t room;         /* place of the frame whose payload is filled in there */
    bool refused;        /* there was no room for:                                */
    tcp_need wanted;

    unsigned char *buffer; /* of received bytes; [first, end) are not used up         */
    size_t first, end;
    size_t skip;           /* padding before the next header */
    transport_frame frame; /* the oldest frame, its header is out of the buffer       */
    uint64_t payload_sum;  /* its payload's checksum, if checksums are on             */
    bool has_frame;
    bool shown;    /* peek() has given its payload                                    */
    bool pulling;  /* pull() has begun                                                */
    size_t pulled; /* bytes that pull() has brought                                   */
    bool greedy;   /* the latest payload was used in the buffer: read far ahead       */
} tcp_link;

static inline size_t tcp_padded(size_t bytes)
{
    return (bytes + TCP_ALIGN - 1) & ~(size_t)(TCP_ALIGN - 1);
}

/* ---- checksum.c ---- */
uint64_t tcp_payload_sum(const void *payload, size_t bytes);
/** @return `stamp` of frame @p number, whose other fields are set. */
uint32_t tcp_stamp(const transport_frame *frame, uint64_t number, bool checksum);
/** Completes the header of frame @p number, whose other fields are set. @param payload  behind
 *  it. */
void tcp_seal(transport_frame *frame, uint64_t number, const void *payload, bool checksum);

/* ---- backlog.c ---- */
/** @return RING_OK or RING_ERR_MEMORY. */
ring_status tcp_backlog_open(tcp_backlog *b);
bool tcp_backlog_fits(const tcp_backlog *b, const tcp_need *need);
/** @return the place of the next @p bytes; they fit. */
size_t tcp_backlog_place(const tcp_backlog *b, size_t bytes);
/** Adds a frame that was written to @p at. */
void tcp_backlog_add(tcp_backlog *b, size_t at, size_t bytes);
void tcp_backlog_lend(tcp_backlog *b, uint64_t frame, const void *payload);
/** Parts of the frames from number @p frame on, without the first @p skip bytes, for one sendmsg().
 *  @return their number. */
size_t tcp_backlog_gather(const tcp_backlog *b, uint64_t frame, size_t skip,
                          struct iovec parts[TCP_PARTS]);
/** Drops the oldest frame, number @p frame, if the kernel has @p handed bytes of it and of the next
 *  ones. @return its bytes on the wire; 0: it is not whole. */
size_t tcp_backlog_drop(tcp_backlog *b, uint64_t frame, size_t handed);

/* ---- send.c ---- */
ring_status tcp_send(transport_link *link, const transport_frame *frame, const void *payload,
                     bool copy);
void *tcp_reserve(transport_link *link);
uint64_t tcp_flushed(const transport_link *link);
void tcp_release(transport_link *link, uint64_t messages);
uint64_t tcp_released(const transport_link *link);
/** @return true if the frame that was refused last would be taken. */
bool tcp_has_room(const tcp_link *l);
/** Gives the kernel as much of the backlog as it takes. Received bytes wait there for peek(). */
ring_status tcp_progress(transport_link *link);

/* ---- receive.c ---- */
ring_status tcp_peek(transport_link *link, const transport_frame **frame, const void **payload);
ring_status tcp_pull(transport_link *link, void *dst);
void tcp_consume(transport_link *link);
const _Atomic uint32_t *tcp_news(const transport_link *link, uint32_t *value);
/** @return true if the buffer, or the cipher, holds a frame that peek() has not shown yet. */
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
/** Breaks the link when the peer's kernel has been silent too long; to be called while a caller
 *  waits. */
ring_status tcp_watch(tcp_link *l);

#endif

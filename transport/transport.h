/* SPDX-License-Identifier: Apache-2.0
 *
 * transport: the contract between the engine and the modules that move bytes. A transport makes
 * links; a link carries frames, both ways, in order, between two ranks.
 *
 * A link belongs to one pair of ranks. A caller with several purposes for a pair opens several
 * links, so that none waits behind another.
 *
 * Threads: the calls on one link are serialised by the caller; different links may be used from
 * different threads.
 *
 * Blocking: nothing here may block. "Not now" is RING_IN_PROGRESS.
 *
 * Errors: a call that fails has called fail() with the cause; the link is then broken and every
 * later call returns the same status. A peer that is gone is RING_ERR_PEER, a connection that
 * changes bytes RING_ERR_SYSTEM.
 * Transports do not retry, do not log above debug, do not exit.
 */
#ifndef RING_TRANSPORT_H
#define RING_TRANSPORT_H

#include "base.h"
#include "pci_distance.h"
#include "ticket.h"

#include <stddef.h>

/** Largest payload behind a header. A frame by reference may refer to more. */
#define TRANSPORT_SEGMENT 65536

/** Every link takes at least this many carried segments, and one more, ahead of the receiver. Plans
 *  that pass messages round a circle without storing them rely on it. */
#define TRANSPORT_WINDOW 4

/** Every link takes at least so much ahead of a receiver that takes nothing: 64 bytes a frame and
 *  the payload behind it, rounded up to 64 bytes, in any mix. */
#define TRANSPORT_WINDOW_BYTES 262144

/** Largest payload inside a header. */
#define TRANSPORT_INLINE 40

/** Header of a frame: one cache line, the same on every transport, host byte order (peers prove at
 *  the handshake that theirs is equal). Short payloads travel in it. Filled by the engine, except
 *  `stamp`; transports read `flags`, `length` and `ext.bytes`. */
typedef struct transport_frame {
    uint32_t stamp;     /* the transport's own                                          */
    uint8_t flags;      /* FRAME_*                                                      */
    uint8_t length;     /* without FRAME_LONG: payload bytes in `data`                  */
    uint16_t call;      /* number of the call, low bits                                 */
    uint64_t signature; /* of the call, packed by the engine                            */
    uint64_t message;   /* number of the message on this link and direction, from 0     */
    union {
        unsigned char data[TRANSPORT_INLINE];
        struct {            /* FRAME_LONG */
            uint64_t bytes; /* payload, carried or referred to                        */
            uint64_t count;
            uint64_t src_ref; /* FRAME_REF: address of the payload in the sender's memory; else 0 at
                                 both ends, and the transport's own between */
            uint64_t dst_ref; /* start of the sender's dst buffer, 0: not reachable */
            uint32_t segment; /* piece of the message, from 0                           */
            int32_t root;
        } ext;
    };
} transport_frame;

_Static_assert(sizeof(transport_frame) == 64, "the frame header is 64 bytes on every wire");
_Static_assert(offsetof(transport_frame, data) % 8 == 0, "payload inside is aligned");

/** REF and STORED come with LONG, and no payload is carried then. A link refuses a REF if it has
 *  mapped no memory of the peer's, a STORED if it has lent none to it. */
enum {
    FRAME_LONG = 1,  /* `ext`, not `data`; ext.bytes bytes of payload follow, at most
                        TRANSPORT_SEGMENT, unless:                                     */
    FRAME_REF = 2,   /* no payload follows: read it at src_ref                         */
    FRAME_STORED = 4 /* no payload follows: it is already in the receiver's dst        */
};

/** @return payload bytes that follow the header. */
static inline size_t transport_behind(const transport_frame *frame)
{
    return frame->flags == FRAME_LONG ? (size_t)frame->ext.bytes : 0;
}

/** @return payload bytes that the frame carries, in its header or behind it. */
static inline size_t transport_carried(const transport_frame *frame)
{
    return frame->flags == 0 ? frame->length : transport_behind(frame);
}

/** @return false: no transport carries such a frame.
 *  @param allowed  FRAME_* that may come over this link. */
static inline bool transport_is_sound(const transport_frame *frame, unsigned allowed)
{
    if (frame->flags == 0)
        return frame->length <= TRANSPORT_INLINE;
    return (frame->flags & FRAME_LONG) != 0 && (frame->flags & ~allowed) == 0 &&
           (frame->flags != FRAME_LONG || frame->ext.bytes <= TRANSPORT_SEGMENT);
}

typedef struct transport transport;

/** Head of every link; transports put their own state behind it. */
typedef struct transport_link {
    const transport *transport;
    int peer; /* rank, for messages */
    uint64_t frames_sent, frames_received;
    uint64_t bytes_sent, bytes_received; /* payload carried in headers or behind them */
} transport_link;

enum { TRANSPORT_KEY = 32 };

typedef enum transport_cipher { TRANSPORT_AES256GCM, TRANSPORT_CHACHA20 } transport_cipher;

/** Keys of one connection, one a direction, known only to its two ends. */
typedef struct transport_keys {
    transport_cipher cipher;
    unsigned char out[TRANSPORT_KEY], in[TRANSPORT_KEY];
} transport_keys;

/** Users' settings for InfiniBand and RoCE. */
typedef struct transport_ib {
    bool disabled;         /* it is not to be used                                            */
    const char *hca;       /* devices and ports, as NCCL_IB_HCA; "": all                      */
    int gid_index;         /* -1: chosen                                                      */
    const char *gid_from;  /* another library's variable that gives it: one that a port lacks is
                              left out. NULL: such a one is an error                          */
    int pkey_index;        /* of the port's table of P_Keys                                   */
    int service_level;     /* InfiniBand's                                                    */
    int traffic_class;     /* RoCE's: DSCP and ECN                                            */
    int timeout;           /* of a packet: 4.096 us * 2^timeout                               */
    int retries;           /* until its queue pair fails                                      */
    bool relaxed;          /* payload may be written to memory in any order                   */
    pci_distance farthest; /* from an accelerator to an adapter that accesses its memory */
} transport_ib;

#define TRANSPORT_IB_DEFAULTS \
    { \
        .hca = "", .gid_index = -1, .timeout = 20, .retries = 6, .farthest = PCI_PXB \
    }

/** A pair of ranks, whose links may share a descriptor. */
typedef struct transport_pair {
    const void *owner; /* this rank, by an address that no other rank of the process has; NULL: a
                          link shares nothing */
    int peer;          /* the other, by a number that does not depend on communicators */
    /** Ends the sleeps of the link's callers: another link has read what woke its descriptor. Any
     *  thread; it must not call links. */
    void (*wake)(void *context);
    void *context;
} transport_pair;

/** The arguments of open() for one link. */
typedef struct transport_peer {
    int rank, peer;      /* this rank, the other                                       */
    transport_pair pair; /* zero: it shares nothing (loop, shm)                          */
    int channel;         /* of the several that a pair may have, from 0                  */
    int fd;              /* connected stream socket, whose other end has proved that it is for the
                            same link; the link owns it, also when open() fails. AF_UNIX between
                            ranks of one host (loop, shm), AF_INET or AF_INET6 else (tcp, ucx) */
    double peer_timeout; /* s; a link that is waited on breaks when the peer's host gives no sign of
                            life for about so long; 0: never. Only where a connection can be cut
                            without an end of file (tcp, ucx) */
    bool checksum;       /* frames carry checksums, both ways; equal at both ends. Only where bytes
                            pass through equipment of others (tcp) */
    const transport_keys *keys; /* not NULL: all frames are encrypted and authenticated, and
                                   checksums are not needed; copied. Only where bytes leave the host
                                   (tcp) */
    const transport_ib *ib;     /* NULL: the defaults; copied, but for `hca` (verbs)      */
} transport_peer;

enum {
    TRANSPORT_CAN_MAP = 1,      /* peers' memory can be read and written in place       */
    TRANSPORT_SAME_PROCESS = 2, /* joins ranks of one process only; over AF_UNIX         */
    TRANSPORT_SAME_HOST = 4,    /* joins ranks of one host only; over AF_UNIX            */
    TRANSPORT_COPIES = 8,       /* send() always copies: frames are flushed at once */
    TRANSPORT_REACHES = 16,     /* peers' registered memory is reached by put() and get(), and not
                                   mapped */
    TRANSPORT_SEALS = 32,       /* frames between hosts are encrypted and authenticated if open()
                                   gets keys; transports without it are not used between hosts
                                   then */
    TRANSPORT_ASKED = 64,       /* used only where RING_TRANSPORT names it               */
    TRANSPORT_REGISTERS = 128   /* with REACHES: automatic regions of calls' buffers pay
                                   (automatic.h) */
};

struct transport {
    const char *name;  /* "shm" */
    const char *about; /* one line for ringinfo and docs */
    unsigned powers;   /* TRANSPORT_CAN_*, TRANSPORT_SAME_* */

    /** True if it works on this machine; else writes the reason into @p why. Must not block and
     *  must leave nothing behind but devices that links will use. @p ib as in transport_peer.
     */
    bool (*probe)(const transport_ib *ib, char *why, size_t size);

    /** @return the number of ports that links of one pair use side by side. NULL: transports
     *  without. */
    int (*rails)(const transport_ib *ib);

    /** Begins a link over @p peer->fd; both ends call it. Until the other end has answered, no
     *  frame is sent or received: all calls that could say "not now". Each of them, and progress(),
     *  checks for the answer; an opening that fails breaks the link.
     *  @param[out] out  set on success only; freed by close(). */
    ring_status (*open)(const transport_peer *peer, transport_link **out);

    /** Frees the link. Frames accepted but not yet flushed may be lost, and so may counts that were
     *  not announced(). */
    void (*close)(transport_link *l);

    /** Takes one frame whole, or nothing: RING_OK or RING_IN_PROGRESS (full). The header is copied,
     *  and with it the payload inside.
     *  @param payload  the bytes behind the header, transport_behind() of them; or the room of
     *                  reserve(). Borrowed until flushed() has counted this frame,
     *  @param copy     unless true: then it is the caller's again with RING_OK. Without it the
     *                  payload may lie in memory of an accelerator that ref() has a reference to.
     *  Everything written to memory before send() is visible to the peer once it sees
     *  the frame (release / acquire). */
    ring_status (*send)(transport_link *l, const transport_frame *frame, const void *payload,
                        bool copy);

    /** @return room for the payload of the next frame (TRANSPORT_SEGMENT bytes, 64-byte aligned),
     *  to be filled, wholly or in part, and given to send(); NULL: full, or broken (the next send()
     *  returns which). Asked again before a send() it returns the same room. */
    void *(*reserve)(transport_link *l);

    /** @return the number of sent frames whose payload is not needed any more, nor this link to
     *  stay open: they arrive also if it is closed now. */
    uint64_t (*flushed)(const transport_link *l);

    /** Announces that the sender's memory of the first @p messages messages received here is not
     *  needed any more. Never fewer than before. Wakes a peer that sleeps with wants_send. */
    void (*release)(transport_link *l, uint64_t messages);

    /** @return the messages that the peer has released (acquire). UINT64_MAX where no frame can
     *  refer to memory, and release() announces nothing. */
    uint64_t (*released)(const transport_link *l);

    /** Moves pending bytes, both ways, without blocking. RING_OK even if nothing moved;
     *  RING_IN_PROGRESS: the other end has not answered yet. A waiting caller calls it now and
     *  then, asleep or not: a peer that was cut off wakes no sleeper, and is noticed here. */
    ring_status (*progress)(transport_link *l);

    /** Looks at the oldest unconsumed frame.
     *  @param[out] frame    header; valid until consume().
     *  @param[out] payload  its bytes, readable until consume(): frame->data without
     *                       FRAME_LONG (8-byte aligned), else the bytes behind the header (64-byte
     *                       aligned); NULL while they are not all here yet (then call again, or
     *                       pull()), and if there are none.
     *  @return RING_IN_PROGRESS if no header is here yet. */
    ring_status (*peek)(transport_link *l, const transport_frame **frame, const void **payload);

    /** Brings the payload of the peeked frame to @p dst (transport_carried() bytes), straight from
     *  the wire if it can. RING_IN_PROGRESS: call again with the same dst. */
    ring_status (*pull)(transport_link *l, void *dst);

    /** Consumes the peeked frame; its payload memory is reused. */
    void (*consume)(transport_link *l);

    /** @return a word that holds *value once the oldest unconsumed frame is here: a waiter may
     *  watch it by acquire loads instead of calling the link, now and then apart. Valid until
     *  the next call of peek() or consume(). NULL: there is none. */
    const _Atomic uint32_t *(*news)(const transport_link *l, uint32_t *value);

    /** Reference to local memory that this link's peer can map or reach; 0 if it cannot. Memory of
     *  an accelerator is only passed to links with REACHES. */
    uint64_t (*ref)(transport_link *l, const void *ptr, size_t bytes);

    /** Address here of the peer's memory. NULL if the reference is out of its bounds, or if the
     *  link does not map. */
    void *(*map)(transport_link *l, uint64_t ref, size_t bytes);

    /** Writes bytes into the peer's memory, and then delivers a frame that announces them. There is
     *  no other order: other frames and transfers may come before it or after. TRANSPORT_REACHES
     *  only, as the next three; else NULL.
     *  @param frame  FRAME_STORED, of ext.bytes bytes.
     *  @param data   memory that ref() has a reference to; borrowed until flushed() has counted the
     *                frame.
     *  @return as send(). RING_ERR_PEER: the reference is out of bounds. */
    ring_status (*put)(transport_link *l, const transport_frame *frame, const void *data,
                       uint64_t dst_ref);

    /** Begins to bring the peer's memory to @p dst, which ref() has a reference to.
     *  @param over  opened here, and closed with the result by a later call on the link.
     *  @return RING_IN_PROGRESS: not now, nothing was begun. */
    ring_status (*get)(transport_link *l, void *dst, uint64_t ref, size_t bytes, ticket *over);

    /** @return true when the peer knows the frames consumed and messages released here, or never
     *  will. */
    bool (*announced)(transport_link *l);

    /** Breaks the link. When it returns, neither end reads or writes memory of this process except
     *  the link's own, and no ticket is used any more. */
    void (*stop)(transport_link *l);

    /** A descriptor that becomes readable (poll) when there may be something to do after arm()
     *  returned true. Owned by the link. */
    int (*wake_fd)(const transport_link *l);

    /** Announces that the caller is about to sleep on wake_fd. @return false if there is something
     *  to do already: do not sleep. wants_send: also wake when the last refused send(), reserve()
     *  or get() may succeed, when more is flushed or released than at the last arm() that wanted to
     *  send, and when a ticket can be closed. A frame that peek() has shown is nothing to do. A
     *  wake-up may be spurious. */
    bool (*arm)(transport_link *l, bool wants_send);

    /** Awake again; drains wake_fd. */
    void (*disarm)(transport_link *l);

    /** Bytes of memory that this end of the link holds. */
    size_t (*memory)(const transport_link *l);
};

/** All transports, strongest first; *count entries. */
const transport *const *transport_all(size_t *count);
/** @return the transport, NULL if unknown. */
const transport *transport_find(const char *name);

/** Wraps @p inner by a link that misbehaves as @p spec says; takes ownership of inner.
 *  @param spec  comma list, seeded and repeatable: "seed=N", "delay=SECONDS" (each frame
 *               is delivered late), "drop=P" (probability that a sent frame vanishes),
 *               "truncate=P" (the frame arrives with fewer bytes than its header says),
 *               "lie=P" (a field of its header is wrong),
 *               "close=BYTES" (the connection ends after that many payload bytes).
 *  @return RING_ERR_CONFIG for a wrong spec (inner is closed). */
ring_status transport_fault_wrap(transport_link *inner, const char *spec, transport_link **out);
/** Checks such a spec ahead of links. */
ring_status transport_fault_check(const char *text);

#endif

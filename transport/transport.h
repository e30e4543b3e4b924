/* SPDX-License-Identifier: Apache-2.0
 *
 * transport: defines the contract between the engine and the modules that move bytes. A transport
 * opens links, and a link carries frames in order, in both directions, between two ranks.
 *
 * A link belongs to one pair of ranks. A caller that needs a pair for several kinds of traffic
 * opens several links, so that no kind blocks another.
 *
 * Threads: the caller serialises the calls on one link; different links may be used from different
 * threads.
 *
 * Blocking: no call may block. A call that cannot proceed now returns RING_IN_PROGRESS.
 *
 * Errors: a call that fails has called fail() with the cause. The link is then broken, and every
 * later call returns the same status. RING_ERR_PEER means that the peer has ended; RING_ERR_SYSTEM
 * means that the connection corrupts bytes. Transports do not retry, never exit the process, and
 * log nothing above debug level.
 */
#ifndef RING_TRANSPORT_H
#define RING_TRANSPORT_H

#include "base.h"
#include "ticket.h"
#include "transport_ib.h"

#include <stddef.h>

/** Largest payload that follows a header, in bytes. A frame that carries a reference may refer to
 *  more. */
#define TRANSPORT_SEGMENT 65536

/** Every link accepts at least TRANSPORT_WINDOW + 1 frames with a full segment of payload before
 *  the receiver consumes any. Plans that pass messages around a ring without storing them rely on
 *  this. */
#define TRANSPORT_WINDOW 4

/** Every link accepts frames of at least this many bytes in total while the receiver consumes
 *  nothing. A frame counts as 64 bytes plus the payload that follows it, rounded up to a multiple
 *  of 64 bytes. Frames may have any mix of sizes. */
#define TRANSPORT_WINDOW_BYTES 262144

/** Largest payload inside a header, in bytes. */
#define TRANSPORT_INLINE 40

/** Header of a frame: one cache line, the same on every transport, in host byte order (the
 *  handshake proves that both peers use the same one). Short payloads travel inside it. The engine
 *  fills it, except `stamp`; transports read `flags`, `length` and `ext.bytes`. */
typedef struct transport_frame {
    uint32_t stamp;     /* for the transport's own use                                  */
    uint8_t flags;      /* FRAME_*                                                      */
    uint8_t length;     /* without FRAME_LONG: payload bytes in `data`                  */
    uint16_t call;      /* low 16 bits of the call's number                             */
    uint64_t signature; /* signature of the call, packed by the engine                  */
    uint64_t message;   /* number of the message on this link and direction, from 0     */
    union {
        unsigned char data[TRANSPORT_INLINE];
        struct {              /* FRAME_LONG */
            uint64_t bytes;   /* size of the payload, carried or referred to            */
            uint64_t count;   /* the call's count, in elements                          */
            uint64_t src_ref; /* with FRAME_REF: reference to the payload in the sender's memory.
                                 Otherwise 0 at both ends; a transport may use it on the wire */
            uint64_t dst_ref; /* reference to the start of the sender's dst buffer; 0 if the
                                 receiver cannot reach it */
            uint32_t segment; /* number of the segment in its message, from 0         */
            int32_t root;     /* root of the call; 0 if it has no root                */
        } ext;
    };
} transport_frame;

_Static_assert(sizeof(transport_frame) == 64, "the frame header is 64 bytes on every wire");
_Static_assert(offsetof(transport_frame, data) % 8 == 0, "a payload in a header is aligned");

/** FRAME_REF and FRAME_STORED are valid only together with FRAME_LONG, and then the frame carries
 *  no payload. A link rejects FRAME_REF if it has not mapped the peer's memory, and FRAME_STORED if
 *  it has not exposed memory to the peer. */
enum {
    FRAME_LONG = 1,  /* the header contains `ext` instead of `data`. Without the other flags,
                        ext.bytes bytes of payload follow it, at most TRANSPORT_SEGMENT */
    FRAME_REF = 2,   /* no payload follows: the receiver reads it at src_ref           */
    FRAME_STORED = 4 /* no payload follows: it is already in the receiver's dst        */
};

/** @return payload bytes that follow the header. */
static inline size_t transport_behind(const transport_frame *frame)
{
    return frame->flags == FRAME_LONG ? (size_t)frame->ext.bytes : 0;
}

/** @return payload bytes that the frame carries, in its header or after it. */
static inline size_t transport_carried(const transport_frame *frame)
{
    return frame->flags == 0 ? frame->length : transport_behind(frame);
}

/** @param allowed  the FRAME_* flags that this link allows.
 *  @return true if the header is consistent and has no other flags. */
static inline bool transport_is_sound(const transport_frame *frame, unsigned allowed)
{
    if (frame->flags == 0)
        return frame->length <= TRANSPORT_INLINE;
    return (frame->flags & FRAME_LONG) != 0 && (frame->flags & ~allowed) == 0 &&
           (frame->flags != FRAME_LONG || frame->ext.bytes <= TRANSPORT_SEGMENT);
}

typedef struct transport transport;

/** Head of every link; the transport's own state follows it. */
typedef struct transport_link {
    const transport *transport;
    int peer; /* the peer's rank, for messages */
    uint64_t frames_sent, frames_received;
    uint64_t bytes_sent, bytes_received; /* payload bytes, in headers and after them */
} transport_link;

enum { TRANSPORT_KEY = 32 };

typedef enum transport_cipher { TRANSPORT_AES256GCM, TRANSPORT_CHACHA20 } transport_cipher;

/** The keys of one connection, one per direction. Only its two ends have them. */
typedef struct transport_keys {
    transport_cipher cipher;
    unsigned char out[TRANSPORT_KEY], in[TRANSPORT_KEY];
} transport_keys;

/** Identifies a pair of ranks, whose links may share one descriptor to sleep on. */
typedef struct transport_pair {
    const void *owner; /* an address that identifies this rank among all ranks of the process; NULL:
                          the link shares no descriptor */
    int peer;          /* a number of the peer that is the same in all communicators */
    /** The transport calls this, from any thread, when another link has drained the shared
     *  descriptor. It wakes the callers that sleep on this link, and must not call links. */
    void (*wake)(void *context);
    void *context;
} transport_pair;

/** The arguments of open() for one link. */
typedef struct transport_peer {
    int rank, peer;      /* this rank and its peer                                       */
    transport_pair pair; /* used by loop and shm; all zero: the link shares no descriptor */
    int channel;         /* number of the link among those of the pair, from 0           */
    int fd;              /* connected stream socket; the peer has proved that it opens the same
                            link. The link owns it, even if open() fails. AF_UNIX between ranks
                            of one host (loop, shm), AF_INET or AF_INET6 otherwise */
    double peer_timeout; /* seconds. While a caller waits, the link breaks when the peer's host has
                            shown no sign of life for about this long; 0: never. Used by tcp and
                            ucx, whose connections can be cut without an end of file */
    bool checksum;       /* frames carry checksums in both directions; both ends must agree. Used by
                            tcp, whose bytes pass through network equipment */
    const transport_keys *keys; /* not NULL: all frames are encrypted and authenticated, and have no
                                   checksums. The link copies the keys. Used by tcp */
    const transport_ib *ib;     /* settings of adapters, which the link copies; NULL: the defaults.
                                   Used by verbs */
} transport_peer;

enum {
    TRANSPORT_CAN_MAP = 1,      /* peers' memory can be read and written in place       */
    TRANSPORT_SAME_PROCESS = 2, /* joins ranks of one process only; over AF_UNIX         */
    TRANSPORT_SAME_HOST = 4,    /* joins ranks of one host only; over AF_UNIX            */
    TRANSPORT_COPIES = 8,     /* send() always copies the payload, so frames are flushed at once */
    TRANSPORT_REACHES = 16,   /* put() and get() access the peers' registered memory, which is not
                                 mapped */
    TRANSPORT_SEALS = 32,     /* encrypts and authenticates frames if open() gets keys; with
                                 encryption on, only these transports are used between hosts */
    TRANSPORT_ASKED = 64,     /* used only if RING_TRANSPORT names it                  */
    TRANSPORT_REGISTERS = 128 /* with TRANSPORT_REACHES: it pays to register the buffers of calls
                                 automatically (automatic.h) */
};

struct transport {
    const char *name;  /* "shm" */
    const char *about; /* one line for ringinfo and docs */
    unsigned powers;   /* the TRANSPORT_* flags above */

    /** @return true if the transport works on this machine; otherwise false, with the reason in
     *  @p why. Must not block, and must keep nothing open except devices that links will use.
     *  @p ib is as in transport_peer. */
    bool (*probe)(const transport_ib *ib, char *why, size_t size);

    /** @return the number of ports that the links of one pair use in parallel. NULL if the
     *  transport has no ports. */
    int (*rails)(const transport_ib *ib);

    /** Begins to open a link over @p peer->fd; both ends call it. Until the peer has answered, no
     *  frame is sent or received, and all calls that can return RING_IN_PROGRESS do so. Each of
     *  these calls checks for the answer. If opening fails, the link breaks.
     *  @param[out] out  set on success only; freed by close(). */
    ring_status (*open)(const transport_peer *peer, transport_link **out);

    /** Frees the link. Frames that were accepted but not yet flushed may be lost, and so may counts
     *  that the peer has not received yet (see announced()). */
    void (*close)(transport_link *l);

    /** Accepts one whole frame (RING_OK) or nothing (RING_IN_PROGRESS: the link is full). Copies
     *  the header, including a payload inside it.
     *  @param payload  the transport_behind() bytes that follow the header, or the room that
     *                  reserve() returned.
     *  @param copy     true: the caller may reuse the payload's memory when send() has returned
     *                  RING_OK. false: the link borrows the payload until flushed() has counted
     *                  this frame; it may then be accelerator memory that has a ref().
     *  Everything that was written to memory before send() is visible to the peer once it has
     *  received the frame (release / acquire). */
    ring_status (*send)(transport_link *l, const transport_frame *frame, const void *payload,
                        bool copy);

    /** @return room for the payload of the next frame (TRANSPORT_SEGMENT bytes, 64-byte aligned),
     *  which the caller fills, wholly or in part, and passes to send(). NULL: the link is full or
     *  broken, and the status of the next send() tells which. Further calls before send() return
     *  the same room. */
    void *(*reserve)(transport_link *l);

    /** @return the number of sent frames whose payload the link no longer needs. They will arrive
     *  even if the link is closed now. */
    uint64_t (*flushed)(const transport_link *l);

    /** Announces that this end no longer needs the memory that the first @p messages received
     *  messages refer to, so that the peer may reuse it. The number never decreases. Wakes a peer
     *  that sleeps with wants_send. */
    void (*release)(transport_link *l, uint64_t messages);

    /** @return the number of messages that the peer has released (acquire). UINT64_MAX if the
     *  frames of this transport cannot refer to memory; then release() does nothing. */
    uint64_t (*released)(const transport_link *l);

    /** Moves pending bytes in both directions without blocking. Returns RING_OK even if nothing
     *  moved, and RING_IN_PROGRESS while the link is opening. A waiting caller must call it from
     *  time to time, even if it sleeps: a peer that was cut off cannot wake the caller, and only
     *  this call detects that. */
    ring_status (*progress)(transport_link *l);

    /** Returns the oldest unconsumed frame without consuming it.
     *  @param[out] frame    header; valid until consume().
     *  @param[out] payload  readable until consume(): frame->data without FRAME_LONG (8-byte
     *                       aligned), otherwise the bytes that follow the header (64-byte aligned).
     *                       NULL if there are no such bytes, or if some have not arrived yet; then
     *                       call again, or call pull().
     *  @return RING_IN_PROGRESS if no header has arrived yet. */
    ring_status (*peek)(transport_link *l, const transport_frame **frame, const void **payload);

    /** Copies the payload of the peeked frame to @p dst (transport_carried() bytes), directly from
     *  the wire if possible. RING_IN_PROGRESS: call again with the same dst. */
    ring_status (*pull)(transport_link *l, void *dst);

    /** Consumes the peeked frame; the memory of its payload may then be reused. */
    void (*consume)(transport_link *l);

    /** @return a word that equals *value once the oldest unconsumed frame has arrived. A waiter may
     *  poll it with acquire loads, and then needs to call the link only from time to time. Valid
     *  until the next call of peek() or consume(). NULL: the link has no such word. */
    const _Atomic uint32_t *(*news)(const transport_link *l, uint32_t *value);

    /** @return a reference by which this link's peer can map or reach the given local memory; 0 if
     *  the peer cannot. Callers pass accelerator memory only to links with TRANSPORT_REACHES. */
    uint64_t (*ref)(transport_link *l, const void *ptr, size_t bytes);

    /** @return the address in this process of the peer's memory; NULL if the reference is out of
     *  bounds, or if the link maps no memory. */
    void *(*map)(transport_link *l, uint64_t ref, size_t bytes);

    /** Writes bytes into the peer's memory, and then delivers a frame that reports them. The order
     *  relative to other frames and transfers is not defined. This call and the next three are NULL
     *  without TRANSPORT_REACHES.
     *  @param frame  FRAME_STORED, of ext.bytes bytes.
     *  @param data   local memory that has a ref(); borrowed until flushed() has counted the frame.
     *  @return as for send(). RING_ERR_PEER: the reference is out of bounds. */
    ring_status (*put)(transport_link *l, const transport_frame *frame, const void *data,
                       uint64_t dst_ref);

    /** Begins to read the peer's memory into @p dst, local memory that has a ref().
     *  @param over  a ticket, which this call opens, and a later call on the link closes with the
     *               result of the read.
     *  @return RING_IN_PROGRESS: the link is busy, and no read was begun. */
    ring_status (*get)(transport_link *l, void *dst, uint64_t ref, size_t bytes, ticket *over);

    /** @return true when the peer has received the numbers of frames consumed and of messages
     *  released at this end, or can no longer receive them. */
    bool (*announced)(transport_link *l);

    /** Breaks the link. Afterwards, neither end accesses memory of this process except the link's
     *  own, and the link no longer uses any ticket. */
    void (*stop)(transport_link *l);

    /** @return a descriptor to poll after arm() has returned true: it becomes readable when there
     *  may be something to do. The link owns it. */
    int (*wake_fd)(const transport_link *l);

    /** Prepares the link for a caller that is about to sleep on wake_fd(). A frame wakes the caller
     *  when it arrives, unless peek() has already returned its header. With wants_send, the caller
     *  is also woken when the last refused send(), reserve() or get() may succeed, when more is
     *  flushed or released than at the last arm() with wants_send, and when a ticket can be closed.
     *  A wake-up may be spurious.
     *  @return false: there is already something to do, and the caller must not sleep. */
    bool (*arm)(transport_link *l, bool wants_send);

    /** Ends the sleep that arm() prepared, and drains wake_fd(). */
    void (*disarm)(transport_link *l);

    /** @return the bytes of memory that this end of the link holds. */
    size_t (*memory)(const transport_link *l);
};

/** @return all transports, an array of *count entries in order of preference. */
const transport *const *transport_all(size_t *count);
/** @return the transport of this name; NULL if there is none. */
const transport *transport_find(const char *name);

/** Wraps @p inner in a link that injects the faults of @p spec; takes ownership of inner.
 *  @param spec  comma-separated list; the same seed repeats the same faults: "seed=N",
 *               "delay=SECONDS" (each frame is delivered late), "drop=P" (probability that a sent
 *               frame is lost), "truncate=P" (probability that a frame arrives with fewer bytes
 *               than its header states), "lie=P" (probability that a field of its header is wrong),
 *               "close=BYTES" (the connection ends after that many payload bytes).
 *  @return RING_ERR_CONFIG for a wrong spec (inner is closed). */
ring_status transport_fault_wrap(transport_link *inner, const char *spec, transport_link **out);
/** Checks a spec before any link exists. @return RING_ERR_CONFIG for a wrong one. */
ring_status transport_fault_check(const char *text);

#endif

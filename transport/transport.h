/* SPDX-License-Identifier: Apache-2.0
 *
 * transport: the contract between the engine and the modules that move bytes. A transport makes
 * links, and a link carries frames in order, in both directions, between two ranks.
 *
 * A link belongs to one pair of ranks. A caller that needs a pair for several kinds of traffic
 * opens several links, so that no kind blocks another.
 *
 * Threads: the caller serialises the calls on one link; different links may be used from different
 * threads.
 *
 * Blocking: no call may block. A call that cannot proceed now returns RING_IN_PROGRESS.
 *
 * Errors: a call that fails has called fail() with the cause; the link is then broken and every
 * later call returns the same status. RING_ERR_PEER means that the peer has ended, RING_ERR_SYSTEM
 * that the connection corrupts bytes.
 * Transports do not retry, do not log above debug, do not exit.
 */
#ifndef RING_TRANSPORT_H
#define RING_TRANSPORT_H

#include "base.h"
#include "ticket.h"
#include "transport_ib.h"

#include <stddef.h>

/** Largest payload that follows a header. A frame by reference may refer to more. */
#define TRANSPORT_SEGMENT 65536

/** Every link accepts at least this many carried segments, and one more, before the receiver
 *  consumes any. Plans that pass messages around a ring without storing them rely on it. */
#define TRANSPORT_WINDOW 4

/** Every link accepts at least this many bytes while the receiver consumes nothing. A frame counts
 *  64 bytes and the payload that follows it, rounded up to 64 bytes; sizes may be mixed freely. */
#define TRANSPORT_WINDOW_BYTES 262144

/** Largest payload inside a header. */
#define TRANSPORT_INLINE 40

/** Header of a frame: one cache line, the same on every transport, in host byte order (the
 *  handshake proves that both peers use the same one). Short payloads travel inside it. The engine
 *  fills it, except `stamp`; transports read `flags`, `length` and `ext.bytes`. */
typedef struct transport_frame {
    uint32_t stamp;     /* for the transport's own use                                  */
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
                                 both ends, and free for the transport's use on the wire */
            uint64_t dst_ref; /* start of the sender's dst buffer, 0: not reachable */
            uint32_t segment; /* piece of the message, from 0                           */
            int32_t root;
        } ext;
    };
} transport_frame;

_Static_assert(sizeof(transport_frame) == 64, "the frame header is 64 bytes on every wire");
_Static_assert(offsetof(transport_frame, data) % 8 == 0, "payload inside is aligned");

/** REF and STORED are only valid with LONG, and then the frame carries no payload. A link rejects a
 *  REF if it has not mapped the peer's memory, and a STORED if it has not exposed memory to the
 *  peer. */
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

/** @return payload bytes that the frame carries, in its header or after it. */
static inline size_t transport_carried(const transport_frame *frame)
{
    return frame->flags == 0 ? frame->length : transport_behind(frame);
}

/** @return true if the header is consistent, and the link allows its flags.
 *  @param allowed  the FRAME_* flags that this link allows. */
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
    int peer; /* rank, for messages */
    uint64_t frames_sent, frames_received;
    uint64_t bytes_sent, bytes_received; /* payload carried in headers or after them */
} transport_link;

enum { TRANSPORT_KEY = 32 };

typedef enum transport_cipher { TRANSPORT_AES256GCM, TRANSPORT_CHACHA20 } transport_cipher;

/** Keys of one connection, one per direction, known only to its two ends. */
typedef struct transport_keys {
    transport_cipher cipher;
    unsigned char out[TRANSPORT_KEY], in[TRANSPORT_KEY];
} transport_keys;

/** A pair of ranks, whose links may share a descriptor. */
typedef struct transport_pair {
    const void *owner; /* this rank, by an address that no other rank of the process has; NULL: the
                          link shares nothing */
    int peer;          /* the other rank, by a number that does not depend on communicators */
    /** Wakes the link's callers, because another link has drained the descriptor that they sleep
     *  on. Called from any thread; it must not call links. */
    void (*wake)(void *context);
    void *context;
} transport_pair;

/** The arguments of open() for one link. */
typedef struct transport_peer {
    int rank, peer;      /* this rank, the other                                       */
    transport_pair pair; /* zero: the link shares nothing (loop, shm)                    */
    int channel;         /* number of the link among those of the pair, from 0           */
    int fd;              /* connected stream socket, whose other end has proved that it opens the
                            same link; the link owns it, even if open() fails. AF_UNIX between ranks
                            of one host (loop, shm), AF_INET or AF_INET6 otherwise (tcp, ucx) */
    double peer_timeout; /* s; while a caller waits, the link breaks when the peer's host has shown
                            no sign of life for about this long; 0: never. Only where a connection
                            can be cut without an end of file (tcp, ucx) */
    bool checksum;       /* frames carry checksums in both directions; both ends must agree. Only
                            where bytes pass through network equipment (tcp) */
    const transport_keys *keys; /* not NULL: all frames are encrypted and authenticated, and
                                   checksums are not needed; copied. Only where bytes leave the host
                                   (tcp) */
    const transport_ib *ib;     /* NULL: the defaults; copied (verbs)                    */
} transport_peer;

enum {
    TRANSPORT_CAN_MAP = 1,      /* peers' memory can be read and written in place       */
    TRANSPORT_SAME_PROCESS = 2, /* joins ranks of one process only; over AF_UNIX         */
    TRANSPORT_SAME_HOST = 4,    /* joins ranks of one host only; over AF_UNIX            */
    TRANSPORT_COPIES = 8,       /* send() always copies, so frames are flushed at once */
    TRANSPORT_REACHES = 16,     /* put() and get() access the peers' registered memory, which is not
                                   mapped */
    TRANSPORT_SEALS = 32,       /* encrypts and authenticates frames if open() gets keys; with
                                   encryption on, only these transports are used between hosts */
    TRANSPORT_ASKED = 64,       /* used only if RING_TRANSPORT names it                  */
    TRANSPORT_REGISTERS = 128   /* with REACHES: registering the buffers of calls automatically is
                                   worth its cost (automatic.h) */
};

struct transport {
    const char *name;  /* "shm" */
    const char *about; /* one line for ringinfo and docs */
    unsigned powers;   /* TRANSPORT_CAN_*, TRANSPORT_SAME_* */

    /** @return true if the transport works on this machine; otherwise it writes the reason to
     *  @p why. Must not block, and must keep nothing open except devices that links will use.
     *  @p ib is as in transport_peer. */
    bool (*probe)(const transport_ib *ib, char *why, size_t size);

    /** @return the number of ports that the links of one pair use in parallel. NULL if the
     *  transport has no ports. */
    int (*rails)(const transport_ib *ib);

    /** Begins to open a link over @p peer->fd; both ends call it. Until the other end has answered,
     *  no frame is sent or received: all calls that can return RING_IN_PROGRESS do so. Each of
     *  them, and progress(), checks for the answer; if opening fails, the link breaks.
     *  @param[out] out  set on success only; freed by close(). */
    ring_status (*open)(const transport_peer *peer, transport_link **out);

    /** Frees the link. Frames that were accepted but not yet flushed may be lost, and so may counts
     *  that the peer has not received yet (see announced()). */
    void (*close)(transport_link *l);

    /** Accepts one whole frame, or nothing: RING_OK or RING_IN_PROGRESS (full). The header is
     *  copied, together with a payload inside it.
     *  @param payload  the transport_behind() bytes that follow the header, or the room that
     *                  reserve() returned.
     *  @param copy     true: the payload is the caller's again when send() returns RING_OK. false:
     *                  it is borrowed until flushed() has counted this frame, and may be in memory
     *                  of an accelerator that ref() has a reference to.
     *  Everything written to memory before send() is visible to the peer once it sees
     *  the frame (release / acquire). */
    ring_status (*send)(transport_link *l, const transport_frame *frame, const void *payload,
                        bool copy);

    /** @return room for the payload of the next frame (TRANSPORT_SEGMENT bytes, 64-byte aligned),
     *  which the caller fills, wholly or in part, and passes to send(); NULL: the link is full or
     *  broken (the next send() returns which). Called again before send(), it returns the same
     *  room. */
    void *(*reserve)(transport_link *l);

    /** @return the number of sent frames whose payload is no longer needed. They will arrive even
     *  if the link is closed now. */
    uint64_t (*flushed)(const transport_link *l);

    /** Announces that this end no longer needs the sender's memory of the first @p messages
     *  messages that it received. The number never decreases. Wakes a peer that sleeps with
     *  wants_send. */
    void (*release)(transport_link *l, uint64_t messages);

    /** @return the number of messages that the peer has released (acquire). UINT64_MAX if frames
     *  cannot refer to memory, and release() announces nothing. */
    uint64_t (*released)(const transport_link *l);

    /** Moves pending bytes in both directions without blocking. Returns RING_OK even if nothing
     *  moved; RING_IN_PROGRESS: the other end has not answered yet. A waiting caller must call it
     *  from time to time, even if it sleeps: a peer that was cut off cannot wake it, and only this
     *  call notices. */
    ring_status (*progress)(transport_link *l);

    /** Returns the oldest unconsumed frame without consuming it.
     *  @param[out] frame    header; valid until consume().
     *  @param[out] payload  readable until consume(): frame->data without FRAME_LONG (8-byte
     *                       aligned), otherwise the bytes that follow the header (64-byte aligned);
     *                       NULL if some have not arrived yet (then call again, or pull()), and if
     *                       there are no bytes.
     *  @return RING_IN_PROGRESS if no header has arrived yet. */
    ring_status (*peek)(transport_link *l, const transport_frame **frame, const void **payload);

    /** Copies the payload of the peeked frame to @p dst (transport_carried() bytes), directly from
     *  the wire if possible. RING_IN_PROGRESS: call again with the same dst. */
    ring_status (*pull)(transport_link *l, void *dst);

    /** Consumes the peeked frame; the memory of its payload may then be reused. */
    void (*consume)(transport_link *l);

    /** @return a word that holds *value once the oldest unconsumed frame has arrived: a waiter may
     *  poll it with acquire loads and call the link only from time to time. Valid until the next
     *  call of peek() or consume(). NULL: the link has no such word. */
    const _Atomic uint32_t *(*news)(const transport_link *l, uint32_t *value);

    /** @return a reference to local memory by which this link's peer can map or reach it; 0 if it
     *  cannot. Callers pass accelerator memory only to links with TRANSPORT_REACHES. */
    uint64_t (*ref)(transport_link *l, const void *ptr, size_t bytes);

    /** @return the address in this process of the peer's memory; NULL if the reference is out of
     *  bounds, or if the link does not map. */
    void *(*map)(transport_link *l, uint64_t ref, size_t bytes);

    /** Writes bytes into the peer's memory, and then delivers a frame that announces them. No other
     *  order is guaranteed: other frames and transfers may arrive before or after it. This call and
     *  the next three are NULL without TRANSPORT_REACHES.
     *  @param frame  FRAME_STORED, of ext.bytes bytes.
     *  @param data   memory that ref() has a reference to; borrowed until flushed() has counted the
     *                frame.
     *  @return as send(). RING_ERR_PEER: the reference is out of bounds. */
    ring_status (*put)(transport_link *l, const transport_frame *frame, const void *data,
                       uint64_t dst_ref);

    /** Begins to read the peer's memory into @p dst, which ref() has a reference to.
     *  @param over  opened by this call, and closed with the result by a later call on the link.
     *  @return RING_IN_PROGRESS: the link is busy, and no read was begun. */
    ring_status (*get)(transport_link *l, void *dst, uint64_t ref, size_t bytes, ticket *over);

    /** @return true when the peer has learned how many frames were consumed and messages released
     *  at this end, or can no longer learn it. */
    bool (*announced)(transport_link *l);

    /** Breaks the link. When it returns, neither end accesses memory of this process except the
     *  link's own, and the link no longer uses any ticket. */
    void (*stop)(transport_link *l);

    /** A descriptor that becomes readable (poll) when there may be something to do after arm()
     *  returned true. Owned by the link. */
    int (*wake_fd)(const transport_link *l);

    /** Prepares the link for a caller that is about to sleep on wake_fd. @return false if there is
     *  something to do already: do not sleep. With wants_send, the caller is also woken when the
     *  last refused send(), reserve() or get() may succeed, when more is flushed or released than
     *  at the last arm() with wants_send, and when a ticket can be closed. A frame that peek() has
     *  returned does not count. A wake-up may be spurious. */
    bool (*arm)(transport_link *l, bool wants_send);

    /** Ends the sleep that arm() prepared; drains wake_fd. */
    void (*disarm)(transport_link *l);

    /** Bytes of memory that this end of the link holds. */
    size_t (*memory)(const transport_link *l);
};

/** @return all transports, the most preferred first; *count entries. */
const transport *const *transport_all(size_t *count);
/** @return the transport, NULL if unknown. */
const transport *transport_find(const char *name);

/** Wraps @p inner in a link that injects the faults of @p spec; takes ownership of inner.
 *  @param spec  comma-separated list; the same seed repeats the same faults: "seed=N",
 *               "delay=SECONDS" (each frame is delivered late), "drop=P" (probability that a sent
 *               frame is lost), "truncate=P" (the frame arrives with fewer bytes than its header
 *               states), "lie=P" (a field of its header is wrong),
 *               "close=BYTES" (the connection ends after that many payload bytes).
 *  @return RING_ERR_CONFIG for a wrong spec (inner is closed). */
ring_status transport_fault_wrap(transport_link *inner, const char *spec, transport_link **out);
/** Checks a spec before any link exists. @return RING_ERR_CONFIG for a wrong one. */
ring_status transport_fault_check(const char *text);

#endif

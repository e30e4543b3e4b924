/* SPDX-License-Identifier: Apache-2.0
 *
 * transport: the contract between the executor and whatever moves bytes. A transport makes
 * links; a link carries frames, both ways, in order, between two ranks.
 *
 * A link belongs to one pair of ranks and one lane (collectives; point-to-point), so that
 * waiting on one lane never holds up the other. Lanes are separate links.
 *
 * Threads: the calls on one link are serialised by the caller; different links may be used
 * from different threads.
 *
 * Blocking: nothing here may block except open(). "Not now" is RING_IN_PROGRESS.
 *
 * Errors: a call that fails has called fail() with what it saw; the link is then broken and
 * every later call returns the same status. A peer that is gone is RING_ERR_PEER.
 * Transports do not retry, do not log above debug, do not exit.
 */
#ifndef RING_TRANSPORT_H
#define RING_TRANSPORT_H

#include "base.h"

/** Largest payload of a frame that carries its bytes. A frame by reference may be longer. */
#define TRANSPORT_SEGMENT 65536

/** Every link takes at least this many carried segments, and one more, ahead of the receiver.
 *  Plans that pass messages round a circle without storing them rely on it. */
#define TRANSPORT_WINDOW 4

enum transport_lane { TRANSPORT_COLLECTIVE, TRANSPORT_POINT_TO_POINT, TRANSPORT_LANES };

/** Header of a frame: 64 bytes, the same on every transport, host byte order (peers prove
 *  at the handshake that theirs is equal). Filled by the executor, except `turn`. */
typedef struct transport_frame {
    uint32_t turn;      /* the transport's own                                        */
    uint16_t comm;      /* communicator among those that share the link; 0: it has its own */
    uint16_t epoch;     /* of that communicator; 0: one that never shrank             */
    uint64_t seq;       /* call number in this lane                                   */
    uint32_t message;   /* message of the call between these two ranks, from 0        */
    uint32_t segment;   /* piece of the message, from 0                               */
    uint64_t bytes;     /* payload, carried or referred to                            */
    uint8_t flags;      /* FRAME_*                                                    */
    uint8_t collective; /* the call's signature: */
    uint8_t dtype;
    uint8_t op;
    int32_t root;
    uint64_t count;
    uint64_t src_ref;   /* FRAME_REF: where the payload lies in the sender's memory    */
    uint64_t dst_ref;   /* start of the sender's dst buffer, 0 if it cannot be mapped  */
} transport_frame;

_Static_assert(sizeof(transport_frame) == 64, "the frame header is 64 bytes on every wire");

enum {
    FRAME_REF = 1,    /* no payload follows: read it at src_ref                        */
    FRAME_STORED = 2, /* no payload follows: it is already in the receiver's dst       */
    FRAME_ACK = 4,    /* no payload: references to the receiver's memory are done with */
    FRAME_CALL = 8    /* no payload: "I wait in this call", so that different calls that
                         wait for each other are seen                                 */
};

typedef struct transport transport;

/** Head of every link; transports put their own state behind it. */
typedef struct transport_link {
    const transport *transport;
    int peer; /* rank, for messages */
    uint64_t frames_sent, frames_received;
    uint64_t bytes_sent, bytes_received; /* carried payload, headers apart */
} transport_link;

/** What boot hands over for one link. */
typedef struct transport_peer {
    int rank, peer;      /* this rank, the other                                       */
    enum transport_lane lane;
    int fd;              /* connected, authenticated stream socket; the link owns it, also
                            when open() fails. AF_UNIX between ranks of one host (loop,
                            shm), AF_INET or AF_INET6 else (tcp)                        */
    double deadline;     /* clock_now() scale; open() must be done by then              */
    double peer_timeout; /* s; a link that is waited on breaks when the peer's host gives no
                            sign of life for about so long; 0: never. Only where a
                            connection can be cut without an end of file (tcp)          */
} transport_peer;

enum {
    TRANSPORT_CAN_MAP = 1,      /* peers' memory can be read and written in place       */
    TRANSPORT_SAME_PROCESS = 2, /* joins ranks of one process only; over AF_UNIX         */
    TRANSPORT_SAME_HOST = 4     /* joins ranks of one host only; over AF_UNIX            */
};

struct transport {
    const char *name;  /* "shm" */
    const char *about; /* one line for ringinfo and docs */
    unsigned powers;   /* TRANSPORT_CAN_*, TRANSPORT_SAME_* */

    /** Can it work on this machine? Writes the reason into @p why if not. Must not block
     *  and must leave nothing behind. */
    bool (*probe)(char *why, size_t size);

    /** Builds the link over @p peer->fd. Both ends call it; may exchange a few bytes over
     *  the socket and wait for the other end until the deadline.
     *  @param[out] out  set on success only; freed by close(). */
    ring_status (*open)(const transport_peer *peer, transport_link **out);

    /** Frees the link. Frames accepted but not yet flushed may be lost. */
    void (*close)(transport_link *l);

    /** Takes one frame whole, or nothing: RING_OK or RING_IN_PROGRESS (full).
     *  @p payload: frame->bytes bytes (none with any FRAME_* flag), borrowed until
     *  flushed() has counted this frame; or what reserve() gave. The header is copied.
     *  Everything written to memory before send() is visible to the peer once it sees
     *  the frame (release / acquire). */
    ring_status (*send)(transport_link *l, const transport_frame *frame, const void *payload);

    /** @return room for the payload of the next frame (TRANSPORT_SEGMENT bytes, 64-byte
     *  aligned), to be filled and given to send(); NULL: full, or broken (the next send()
     *  tells). Asked again before a send() it returns the same room. */
    void *(*reserve)(transport_link *l);

    /** @return how many of the frames sent need their payload no more. */
    uint64_t (*flushed)(const transport_link *l);

    /** Moves what is pending, both ways, without blocking. RING_OK even if nothing moved.
     *  Whoever waits calls it now and then, asleep or not: a peer that was cut off wakes
     *  nobody, and is noticed here. */
    ring_status (*progress)(transport_link *l);

    /** Looks at the oldest unconsumed frame.
     *  @param[out] frame    header; valid until consume().
     *  @param[out] payload  its bytes, readable until consume(), 64-byte aligned; NULL while
     *                       they are not all here yet (then call again, or pull()), and for
     *                       frames that carry none.
     *  @return RING_IN_PROGRESS if no header is here yet. */
    ring_status (*peek)(transport_link *l, const transport_frame **frame, const void **payload);

    /** Brings the payload of the peeked frame to @p dst (frame->bytes bytes), straight from
     *  the wire if it can. RING_IN_PROGRESS: call again with the same dst. */
    ring_status (*pull)(transport_link *l, void *dst);

    /** Done with the peeked frame; its payload memory is reused. */
    void (*consume)(transport_link *l);

    /** Reference to local memory that this link's peer can map; 0 if it cannot. */
    uint64_t (*ref)(const transport_link *l, const void *ptr, size_t bytes);

    /** Address here of the peer's memory. NULL if the reference is out of its bounds. */
    void *(*map)(transport_link *l, uint64_t ref, size_t bytes);

    /** A descriptor that becomes readable (poll) when there may be something to do after
     *  arm() returned true. Owned by the link. */
    int (*wake_fd)(const transport_link *l);

    /** Announces that the caller is about to sleep on wake_fd. @return false if there is
     *  something to do already: do not sleep. wants_send: also wake when a frame can be
     *  sent or more is flushed. A frame that peek() has shown is nothing to do.
     *  A wake-up may be spurious. */
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
 *               "close=BYTES" (the connection ends after that many payload bytes).
 *  @return RING_ERR_CONFIG for a wrong spec (inner is closed). */
ring_status transport_fault_wrap(transport_link *inner, const char *spec, transport_link **out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * channel: the messages between this rank and one other, as frames of a link.
 *
 * Numbers. When a work starts it reserves the next message numbers of each channel that it uses, as
 * many as its program has messages there. All ranks start works in the same order, so both ends
 * give the same numbers, and messages leave and are taken in their order: works overlap without
 * tags to match, no message is ever set aside, and an earlier work never waits for a later one.
 *
 * Waiting. A work that cannot go on waits on one channel, for one of three events; the channel
 * keeps the waiting works, so that a turn visits only channels with waiting works.
 */
#ifndef RING_CORE_CHANNEL_H
#define RING_CORE_CHANNEL_H

#include "accelerator.h"
#include "signature.h"

/** Shorter messages are carried: a copy costs less than a reference and its release. */
enum { REFERENCE_MIN_BYTES = 2048 };
/** Bytes that a call sends a peer without waiting for it; and as much again for the next call. */
enum { EAGER_BYTES = TRANSPORT_WINDOW_BYTES / 2 };

/** Calls of one traffic wait only for calls of the same traffic. Tagged calls have two: see
 * tagged.h. */
enum channel_traffic {
    TRAFFIC_COLLECTIVE,
    TRAFFIC_PAIR,
    TRAFFIC_TAGGED,
    TRAFFIC_GRANTED,
    TRAFFIC_KINDS
};

struct work;
struct tagged_peer;

typedef enum wait_kind {
    WAIT_FRAME, /* for a frame of its message */
    WAIT_ROOM,  /* for its place in the order of messages, or for room on the link */
    WAIT_FREE,  /* until the peer, or the link, has released its chunks; or until a transfer is
                   over */
    WAIT_KINDS
} wait_kind;

/** A message, queued or being sent. */
typedef struct posted {
    struct posted *next;
    struct work *work;
    int32_t peer;    /* of the work                                   */
    bool stored;     /* a notice: the bytes are in the peer's buffer */
    bool placed;     /* the peer receives it into its dst */
    bool by_value;   /* never by reference                            */
    bool copy;       /* the bytes are copied when a frame takes them */
    uint64_t number; /* on the channel                                */
    const char *data;
    size_t bytes, done;
    size_t segment;        /* bytes of a carried frame                      */
    uint64_t put_at;       /* address in the peer's memory, 0: no put */
    const accelerator *by; /* the accelerator whose memory `data` is, NULL: the host */
    ticket brought;        /* closes when the next frame's bytes are in host memory */
    bool asked;            /* `by` copies them */
} posted;

typedef struct channel {
    transport_link *link; /* unopened_link() before a socket is there        */
    ring_comm *comm;
    int32_t rank; /* the peer                                        */
    enum channel_traffic traffic;
    int32_t index;                    /* among the channels of the pair and traffic         */
    struct channel *next_greeting;    /* among those whose links are not open yet */
    bool dialed;                      /* a socket is there, or was asked for */
    bool lost;                        /* the link was seen to be broken                  */
    int32_t place;                    /* in the communicator's active channels, -1: none */
    uint64_t out_given, in_given;     /* message numbers that were reserved by works */
    uint64_t sent, received;          /* messages that are complete */
    uint64_t sends, recvs;            /* TRAFFIC_PAIR: calls so far                         */
    posted *posts;                    /* by number                                       */
    struct work *waiting[WAIT_KINDS]; /* by number                                   */
    struct work *last[WAIT_KINDS];    /* of those, while there are any               */
    bool armed;                       /* a thread sleeps over the link                   */
    bool armed_out;                   /* the latest sleeper wants to send, too           */
    uint64_t armed_at;                /* frames that were received by then               */
    uint64_t watch_mark;              /* as its communicator's: the progress thread does */
    struct tagged_peer *tagged;       /* TRAFFIC_TAGGED: what goes over it; else NULL       */
} channel;

/** The state of a work on one channel. */
typedef struct work_peer {
    channel *on;
    uint64_t out_base, in_base; /* numbers of its first messages                          */
    uint64_t first_ref;         /* number of the first message that went by reference, or
                                   UINT64_MAX                                             */
    uint64_t flush_mark;        /* the link's frames_sent after its latest frame          */
    uint64_t dst_ref;           /* the peer's dst buffer; 0: unknown, or not to be mapped */
    bool dst_announced;         /* dst_ref was read, from the first message; later ones do not
                              change it, or a fold would store only the rest of its result */
    bool ref_in;                /* a message came by reference */
    size_t ahead;               /* bytes of the present fold's result that were sent */
} work_peer;

/** @return true if the channel puts and gets memory, and does not map it. */
static inline bool channel_transfers(const channel *c)
{
    return (c->link->transport->powers & TRANSPORT_REACHES) != 0;
}
/** @return true if all that the channel sends is copied at once. */
static inline bool channel_copies(const channel *c)
{
    return (c->link->transport->powers & TRANSPORT_COPIES) != 0;
}
/** @return true if the link has frames that it has not handed over yet: they leave only if its
 *  progress() is called. */
static inline bool channel_holds_frames(const channel *c)
{
    const transport_link *l = c->link;
    return !channel_copies(c) && l->transport->flushed(l) < l->frames_sent;
}

/** Notes that the work waits here. @return RING_IN_PROGRESS. */
ring_status channel_await(struct work *work, channel *c, wait_kind kind, uint64_t number);
/** @return the first work that waits here for @p kind, taken off the list, if it may be able to go
 *  on; else NULL. */
struct work *channel_ready(channel *c, wait_kind kind);
/** Takes all works that wait until chunks are free off the list. */
struct work *channel_take_free(channel *c);
/** @return a work that waits here, or has a message queued; NULL: none. */
struct work *channel_first_waiter(const channel *c);
/** @return true if works wait here for more than frames of the peer. */
bool channel_wants_out(const channel *c);
/** @return true if no work waits here, no message is queued, and the link holds no frame back. */
bool channel_is_idle(const channel *c);

#endif

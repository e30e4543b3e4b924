/* SPDX-License-Identifier: Apache-2.0
 *
 * channel: sends and receives the messages between this rank and one other, as frames of a link.
 *
 * Message numbers: a work that starts reserves the next message numbers of each channel that it
 * uses, one for each message that its program exchanges there. All ranks start works in the same
 * order, so both ends assign the same numbers, and messages are sent and received in that order.
 * Works can therefore overlap without matching tags, a receiver never buffers messages that arrive
 * out of order, and an earlier work never waits for a later one.
 *
 * Waiting: a work that cannot continue waits on one channel, for one of the events of wait_kind. An
 * engine turn visits only channels on which works wait.
 */
#ifndef RING_CORE_CHANNEL_H
#define RING_CORE_CHANNEL_H

#include "accelerator.h"
#include "signature.h"

/** Shorter messages are carried in frames: a copy costs less than a reference and its release. */
enum { REFERENCE_MIN_BYTES = 2048 };
/** Bytes that a call may send to a peer without waiting for it. The link has room for twice as
 *  much, so that the next call may do the same. */
enum { EAGER_BYTES = TRANSPORT_WINDOW_BYTES / 2 };

/** Kinds of traffic. A call waits only for calls of its own kind. Tagged calls use two kinds, see
 *  tagged.h. */
enum channel_traffic {
    TRAFFIC_COLLECTIVE,
    TRAFFIC_PAIR,
    TRAFFIC_TAGGED,
    TRAFFIC_GRANTED,
    TRAFFIC_DEVICE, /* of calls that accelerators run, see device_proxy.h */
    TRAFFIC_KINDS
};

struct work;
struct tagged_peer;

typedef enum wait_kind {
    WAIT_FRAME, /* until a frame of its message arrives */
    WAIT_ROOM,  /* until its message is the next to be sent, and the link has room */
    WAIT_FREE,  /* until the peer or the link has released its chunks, or a transfer has ended */
    WAIT_KINDS
} wait_kind;

/** A message that is queued or being sent. */
typedef struct posted {
    struct posted *next;
    struct work *work;
    int32_t peer;    /* index among the work's peers */
    bool stored;     /* the bytes are already in the peer's buffer; only a notice is sent */
    bool placed;     /* the peer receives it directly into its dst */
    bool by_value;   /* must not be sent by reference */
    bool copy;       /* the bytes are copied when they are put into a frame */
    uint64_t number; /* message number on the channel */
    const char *data;
    size_t bytes, done;
    size_t segment;        /* bytes of a carried frame */
    uint64_t put_at;       /* address in the peer's memory; 0: no put */
    const accelerator *by; /* the accelerator that owns `data`; NULL: the host does */
    ticket brought;        /* signals that `by` has copied the next frame's bytes to the host */
    bool asked;            /* `by` was asked for that copy, which has not ended */
} posted;

typedef struct channel {
    transport_link *link; /* placeholder_link() until a socket exists */
    ring_comm *comm;
    int32_t rank; /* the peer */
    enum channel_traffic traffic;
    int32_t index;                    /* among the channels of this pair and kind of traffic */
    struct channel *next_greeting;    /* in the list of channels whose links are not open yet */
    bool dialed;                      /* a socket exists or was requested */
    bool lost;                        /* the link was found to be broken */
    int32_t place;                    /* index in the communicator's active channels; -1: idle */
    uint64_t out_given, in_given;     /* message numbers that works have reserved */
    uint64_t sent, received;          /* messages that are complete */
    uint64_t sends, recvs;            /* TRAFFIC_PAIR: calls so far */
    posted *posts;                    /* queued messages, sorted by number */
    struct work *waiting[WAIT_KINDS]; /* sorted by number */
    struct work *last[WAIT_KINDS];    /* ends of those lists, valid while they are not empty */
    bool armed;                       /* a thread sleeps until a frame arrives on the link */
    bool armed_out;                   /* that thread also wakes when the link can send */
    uint64_t armed_at;                /* the link's frames_received when it was armed */
    uint64_t poll_mark;               /* equal to comm_sleep.poll_mark if the progress thread sleeps
                                         on this channel */
    struct tagged_peer *tagged;       /* the messages of TRAFFIC_TAGGED; else NULL */
    bool proxy_listens, proxy_full;   /* of TRAFFIC_DEVICE: device_proxy.c takes frames; the link
                                         has refused one of it */
} channel;

/** The state of a work on one of its channels. */
typedef struct work_peer {
    channel *on;
    uint64_t out_base, in_base; /* numbers of its first messages */
    uint64_t first_ref;         /* number of the first message sent by reference, or UINT64_MAX */
    uint64_t flush_mark;        /* the link's frames_sent after the work's latest frame */
    uint64_t dst_ref;           /* the peer's dst buffer; 0: unknown or cannot be mapped */
    bool dst_announced;         /* dst_ref was read from the first message. Later messages do not
                                   change it, so that a fold stores all of its result or nothing */
    bool ref_in;                /* a message arrived by reference */
    size_t ahead;               /* bytes of the current fold's result that were already sent */
} work_peer;

/** @return true if the link puts and gets remote memory instead of mapping it. */
static inline bool channel_transfers(const channel *c)
{
    return (c->link->transport->powers & TRANSPORT_REACHES) != 0;
}
/** @return true if the link copies all payloads when it sends them. */
static inline bool channel_copies(const channel *c)
{
    return (c->link->transport->powers & TRANSPORT_COPIES) != 0;
}
/** @return true if the link still holds frames, which are only sent if its progress() is called. */
static inline bool channel_holds_frames(const channel *c)
{
    const transport_link *l = c->link;
    return !channel_copies(c) && l->transport->flushed(l) < l->frames_sent;
}

/** Makes the work wait on the channel for message @p number. @return RING_IN_PROGRESS. */
ring_status channel_await(struct work *work, channel *c, wait_kind kind, uint64_t number);
/** Removes the first work that waits here for @p kind, if it may be able to continue.
 *  @return the work, or NULL. */
struct work *channel_ready(channel *c, wait_kind kind);
/** Removes all works that wait here for WAIT_FREE. @return them as a list, linked by wait.next. */
struct work *channel_take_free(channel *c);
/** @return a work that waits here or has a message queued; NULL if there is none. */
struct work *channel_first_waiter(const channel *c);
/** @return true if a message waits to be sent, or a work waits for the release of its chunks. */
bool channel_wants_out(const channel *c);
/** @return true if no work waits here, no message is queued, and the link holds no frames. */
bool channel_is_idle(const channel *c);

#endif

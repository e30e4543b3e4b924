/* SPDX-License-Identifier: Apache-2.0
 *
 * tagged: sends and receives that meet by tag, and receives from any source.
 *
 * Two lanes. LANE_TAGGED carries, in the order of the calls, one message for each send: a short one
 * with its payload (sent ahead), a longer one as a question alone. The receiver takes what comes as
 * it comes. A message that a receive waits for goes straight to its buffer, any other is set aside.
 * When a receive meets a question it answers with a grant. Both ends then give their works the next
 * message numbers of LANE_GRANTED, the sender in the order of the grants, which is that of the
 * receiver: from there on the two are a send and a receive like all others (channel.h), with any
 * memory and any way to move it. So of long messages nothing but questions is ever set aside.
 *
 * Bounds. A receiver keeps at most TAGGED_WINDOW of what a sender has sent ahead; the
 * receiver tells by credits what it has let go of. A send that does not fit becomes a question, as
 * if it were long: no message ever holds up one behind it that has another tag. Questions are as
 * many as the sender has sends under way.
 *
 * Order. A call takes its place when it is made, also one behind an event that is not set. Receives
 * are tried in that order by each message that comes, messages in the order of their arrival by
 * each receive. Links are visited in turn, and one that has served a receive from any source comes
 * last.
 *
 * A frame of LANE_TAGGED is one of:
 *     TAGGED_BYTES   the next bytes of a message that is sent ahead; those of one message follow
 *                    each other, all with its tag and signature. Within 40 bytes they lie in the
 *                    header; else ext.bytes follow it, and ext.count is the call's.
 *     TAGGED_ASK     of a send, with its number among the questions and its count
 *     TAGGED_GRANT   the number of the question that may send
 *     TAGGED_CREDIT  bytes that the receiver has let go of
 * `message` is the tag, `call` the kind in its low 2 bits and the number of the frame above them.
 */
#ifndef RING_CORE_TAGGED_H
#define RING_CORE_TAGGED_H

#include "work.h"

/** Sent ahead and still kept by the receiver, of a pair: payload, and TAGGED_KEEP a message. */
enum { TAGGED_WINDOW = 512 << 10, TAGGED_KEEP = 192 };

/** A message that has come, or whose question has; or a send of this rank to itself. */
typedef struct tagged_message {
    struct tagged_message *next;
    struct tagged_peer *from; /* NULL: this rank itself                     */
    call_signature call;      /* the sender's, with its tag                 */
    uint64_t signature, seq;  /* of it                                      */
    int32_t peer;             /* the sender                                 */
    bool asked;               /* it is a question                           */
    uint64_t question;        /* then its number                            */
    size_t bytes, done;       /* of its payload, and here                   */
    char *to, *kept;          /* where that goes; where it is kept, or NULL */
    work *receiver, *sender;  /* that it has met; of this rank itself       */
} tagged_message;

/** The traffic over a channel of LANE_TAGGED. */
typedef struct tagged_peer {
    channel *on;
    struct tagged_peer *next; /* in a circle                                              */
    work *queue, **queue_end; /* sends of which nothing, or not all, has left: call order */
    work *sending;            /* of them, the one whose frames have begun                 */
    work *asked, **asked_end; /* sends whose questions wait for a grant                   */
    tagged_message *grants, **grants_end; /* to be told                                   */
    tagged_message *in;                   /* whose frames are coming                      */
    uint64_t sends, heard, questions;     /* so far                                       */
    uint16_t frames_out, frames_in;       /* low bits                                     */
    size_t ahead, owed; /* kept by the peer; let go of here, and not told                 */
    size_t untold;      /* taken ahead, and in no credit: the peer's `ahead`, or less     */
    int32_t named;      /* receives that wait for this peer alone                         */
    int32_t open;       /* sends of the queue whose gates are open                        */
} tagged_peer;

/** Of a communicator. */
typedef struct tagged_traffic {
    tagged_peer *turn;                  /* the next to be visited                   */
    work *posted, **posted_end;         /* receives that have met nothing: in order */
    int32_t any;                        /* of them, from any source                 */
    tagged_message *early, **early_end; /* that have met no receive: by arrival     */
    tagged_message *spare;
    uint64_t recvs, self_sends;
    size_t bytes; /* of memory for messages, and of payload that is kept */
} tagged_traffic;

/* ---- tagged.c: who meets whom ---- */

/** Reads what options say of tags into the call. @param status  of what was read before. */
ring_status tagged_read(call_signature *call, const ring_call *options, ring_status status);
/** The same of a start of a call whose tag was given when it was prepared. */
ring_status tagged_read_again(const call_signature *call, const ring_call *options);
/** The work takes its place. The caller starts it next. */
ring_status tagged_enlist(work *w, const call_signature *call, ring_envelope *envelope);
/** Goes on with one whose gate is open. @return RING_OK: its ops may run; RING_IN_PROGRESS: it
 * waits here, and is held when it may go on. */
ring_status tagged_advance(work *w, bool *moved);
/** A message came, or begins to come, or its question did: it meets a receive, or is set aside. */
ring_status tagged_deliver(struct ring_comm *comm, tagged_message *m);
/** The whole of it is here, or all that is known of it before a grant. */
void tagged_arrived(tagged_message *m);
/** @return the text of a deadline that passed. */
ring_status tagged_timed_out(const work *w);
/** A work that has met a message ends. */
void tagged_forget(work *w);
/** All works end: forgets them, and what came. */
void tagged_clear(struct ring_comm *comm);
/** Gives memory back. */
void tagged_free(struct ring_comm *comm);
/** @return one with nothing in it; NULL: no memory. */
tagged_message *tagged_message_new(struct ring_comm *comm);
void tagged_message_drop(struct ring_comm *comm, tagged_message *m);

/* ---- tagged_link.c: what goes over a link ---- */

/** Makes what hangs on a new channel of LANE_TAGGED. */
ring_status tagged_peer_new(channel *c);
/** Visits the links that somebody waits for. Fails the communicator if one of them does. */
ring_status tagged_turn(struct ring_comm *comm, bool *moved);
/** Sends what may leave, as far as the link takes it.
 *  @param own  it is being advanced, and not to be held. */
ring_status tagged_flush(tagged_peer *p, const work *own, bool *moved);
/** The message's share of the window is told to its sender, sooner or later. */
void tagged_let_go(tagged_message *m);
bool tagged_wants_out(const tagged_peer *p);
/** @return true if somebody waits for what comes from there. */
bool tagged_listens(const tagged_peer *p);
/** @return a work that can end only by this peer; NULL: none. */
work *tagged_first_waiter(const tagged_peer *p);

#endif

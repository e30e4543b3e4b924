/* SPDX-License-Identifier: Apache-2.0
 *
 * tagged: sends and receives that meet by tag, and receives from any source.
 *
 * Two lanes. LANE_TAGGED carries, in call order, one message for each send: a short one with its
 * payload (sent ahead), a longer one as a question alone. The receiver takes frames as they come. A
 * message that a receive waits for goes straight to its buffer, any other is set aside. When a
 * receive meets a question it answers with a grant. Both ends then give their works the next
 * message numbers of LANE_GRANTED, in the order of the grants: from there on the two are a send and
 * a receive like all others (channel.h), with any memory and any way to move it. So of long
 * messages only the questions are ever set aside.
 *
 * Bounds. A receiver keeps at most TAGGED_WINDOW of the bytes that a sender has sent ahead; credits
 * announce the bytes that it has freed. A send that does not fit becomes a question, as if it were
 * long: no message ever blocks a later one that has another tag. There are at most as many
 * questions as the sender has sends under way.
 *
 * Order. A call takes its place when it is made, also one behind an event that is not set. A
 * message is matched with receives in the order of their calls, a receive with messages in the
 * order of their arrival. Links are visited round robin, and one that has served a receive from any
 * source comes last.
 *
 * A frame of LANE_TAGGED is one of:
 *     TAGGED_BYTES   the next bytes of a message that is sent ahead; those of one message follow
 *                    each other, all with its tag and signature. Within 40 bytes they lie in the
 *                    header; else ext.bytes follow it, and ext.count is the call's.
 *     TAGGED_ASK     of a send, with its number among the questions and its count
 *     TAGGED_GRANT   the number of the question that may send
 *     TAGGED_CREDIT  bytes that the receiver has freed
 * `message` is the tag, `call` the kind in its low 2 bits and the number of the frame above them.
 */
#ifndef RING_CORE_TAGGED_H
#define RING_CORE_TAGGED_H

#include "work.h"

/** Bytes of a pair sent ahead and kept by the receiver: payload, and TAGGED_KEEP a message. */
enum { TAGGED_WINDOW = 512 << 10, TAGGED_KEEP = 192 };
/** A credit is sent when so much is owed. */
enum { TAGGED_OWED = TAGGED_WINDOW / 4 };

/** Bytes of the window that a message takes. */
static inline size_t tagged_charge(size_t bytes)
{
    return bytes + TAGGED_KEEP;
}

/** A message, or its question, that has arrived; or a send of this rank to itself. */
typedef struct tagged_message {
    struct tagged_message *next;
    struct tagged_peer *from; /* NULL: this rank itself                     */
    call_signature call;      /* the sender's, with its tag                 */
    uint64_t signature, seq;  /* of it                                      */
    int32_t peer;             /* the sender                                 */
    bool asked;               /* it is a question                           */
    uint64_t question;        /* then its number                            */
    size_t bytes, done;       /* of its payload, and here                   */
    char *to, *kept;          /* where payload goes; its buffer here, or NULL */
    work *receiver, *sender;  /* the receive that it has met; the send, if of this rank itself */
} tagged_message;

/** The traffic over a channel of LANE_TAGGED. */
typedef struct tagged_peer {
    channel *on;
    struct tagged_peer *next; /* in a circle                                              */
    work *queue, **queue_end; /* sends that have not left completely: call order */
    work *sending;            /* of them, the one whose frames have begun */
    work *asked, **asked_end; /* sends whose questions wait for a grant                   */
    tagged_message *grants, **grants_end; /* not announced to the peer yet */
    tagged_message *in;                   /* whose frames are arriving */
    uint64_t sends, heard, questions;     /* counted so far */
    uint16_t frames_out, frames_in;       /* low bits                                     */
    size_t ahead, owed;                   /* kept by the peer; freed here, and in no credit yet */
    size_t unannounced; /* taken ahead, and in no credit yet: at most the peer's `ahead` */
    int32_t named;      /* receives that wait for this peer alone */
    int32_t open;       /* sends of the queue whose gates are open                        */
} tagged_peer;

/** The tagged traffic of a communicator. */
typedef struct tagged_traffic {
    tagged_peer *next_visited;          /* by tagged_turn() */
    work *posted, **posted_end;         /* receives without a message: call order */
    int32_t any;                        /* of them, from any source                 */
    tagged_message *early, **early_end; /* messages without a receive: by arrival */
    tagged_message *spare;
    uint64_t recvs, self_sends;
    size_t bytes; /* of memory for messages, and of payload that is kept */
} tagged_traffic;

/* ---- tagged_traffic.c: records ---- */

/** @return an empty record; NULL: no memory. */
tagged_message *tagged_message_new(struct ring_comm *comm);
void tagged_message_drop(struct ring_comm *comm, tagged_message *m);
/** Frees the message's share of the window; a credit announces it later. */
void tagged_let_go(tagged_message *m);
bool tagged_wants_out(const tagged_peer *p);
/** @return true if a work waits for frames from there. */
bool tagged_listens(const tagged_peer *p);
/** @return a work that can end only by this peer; NULL: none. */
work *tagged_first_waiter(const tagged_peer *p);
/** @return the first send of the queue that may leave; NULL: none. */
work *tagged_next_to_send(const tagged_peer *p);
/** Makes the tagged_peer of a new channel of LANE_TAGGED. */
ring_status tagged_peer_new(channel *c);
/** Drops the message of a work that ends. */
void tagged_forget(work *w);
/** Drops all messages when all works end. */
void tagged_clear(struct ring_comm *comm);
/** Frees its memory. */
void tagged_free(struct ring_comm *comm);

/* ---- tagged_match.c: matching ---- */

/** Matches a message that begins to come, or a question, with a receive, or sets it aside. */
ring_status tagged_deliver(struct ring_comm *comm, tagged_message *m);
/** The message is complete, or its question is here: its receiver may go on. */
void tagged_arrived(tagged_message *m);
/** Matches a receive with a message that has come, or lists it among those that wait. */
ring_status tagged_seek(work *w);
/** @return the traffic with a rank; NULL: none so far. */
tagged_peer *tagged_peer_of(const struct ring_comm *comm, int rank);

/* ---- tagged.c: calls ---- */

/** Reads the tag of the options into the call. @param status  of earlier checks, kept. */
ring_status tagged_read(call_signature *call, const ring_call *options, ring_status status);
/** The same for a start of a prepared call, whose tag is set already. */
ring_status tagged_read_again(const call_signature *call, const ring_call *options);
/** Enters the work in its list. The caller starts it next. */
ring_status tagged_enlist(work *w, const call_signature *call, ring_envelope *envelope);
/** Goes on with a work whose gate is open. @return RING_OK: its ops may run; RING_IN_PROGRESS: it
 *  waits here, and is held when it may go on. */
ring_status tagged_advance(work *w, bool *moved);
/** @return the text of a deadline that passed. */
ring_status tagged_timed_out(const work *w);

/* ---- tagged_link.c: frames ---- */

/** Serves the links of active channels. Fails the communicator if one of them fails. */
ring_status tagged_turn(struct ring_comm *comm, bool *moved);
/** Sends frames as far as the link takes them.
 *  @param own  the work that is being advanced: it is not to be held. */
ring_status tagged_flush(tagged_peer *p, const work *own, bool *moved);

#endif

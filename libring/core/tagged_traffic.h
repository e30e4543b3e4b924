/* SPDX-License-Identifier: Apache-2.0
 * tagged_traffic: records of tagged messages, and of the peers that send them (tagged.h). */
#ifndef RING_CORE_TAGGED_TRAFFIC_H
#define RING_CORE_TAGGED_TRAFFIC_H

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

/** The traffic over a channel of TRAFFIC_TAGGED. */
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

/** @return an empty record; NULL: no memory. */
tagged_message *tagged_message_new(ring_comm *comm);
void tagged_message_drop(ring_comm *comm, tagged_message *m);
/** Frees the message's share of the window; a credit announces it later. */
void tagged_let_go(tagged_message *m);
bool tagged_wants_out(const tagged_peer *p);
/** @return true if a work waits for frames from there. */
bool tagged_listens(const tagged_peer *p);
/** @return a work that can end only by this peer; NULL: none. */
work *tagged_first_waiter(const tagged_peer *p);
/** @return the first send of the queue that may leave; NULL: none. */
work *tagged_next_to_send(const tagged_peer *p);
/** Makes the tagged_peer of a new channel of TRAFFIC_TAGGED. */
ring_status tagged_peer_new(channel *c);
/** Drops the message of a work that ends. */
void tagged_forget(work *w);
/** Drops all messages when all works end. */
void tagged_clear(ring_comm *comm);
/** Frees its memory. */
void tagged_free(ring_comm *comm);

#endif

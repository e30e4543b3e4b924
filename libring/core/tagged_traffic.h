/* SPDX-License-Identifier: Apache-2.0
 * tagged_traffic: defines the records of tagged messages and of the peers that exchange them
 * (tagged.h). */
#ifndef RING_CORE_TAGGED_TRAFFIC_H
#define RING_CORE_TAGGED_TRAFFIC_H

#include "work.h"

/** TAGGED_WINDOW: the most bytes that a rank sends ahead to a peer and that the peer stores. A
 *  message counts with its payload and TAGGED_KEEP. */
enum { TAGGED_WINDOW = 512 << 10, TAGGED_KEEP = 192 };
/** A credit is sent when this many freed bytes have not been announced. */
enum { TAGGED_OWED = TAGGED_WINDOW / 4 };

/** @return the bytes of the window that a message with @p bytes of payload uses. */
static inline size_t tagged_charge(size_t bytes)
{
    return bytes + TAGGED_KEEP;
}

/** A message or question that has arrived, or a send of this rank to itself. */
typedef struct tagged_message {
    struct tagged_message *next;
    struct tagged_peer *from; /* NULL: this rank itself */
    call_signature call;      /* the sender's call, with its tag */
    uint64_t signature, seq;  /* the call's packed signature and number */
    int32_t peer;             /* the sender's rank */
    bool asked;               /* this is a question */
    uint64_t question;        /* the number of the question */
    size_t bytes, done;       /* bytes of the payload, and bytes of it that have arrived */
    char *to;                 /* destination of the payload */
    char *kept;               /* the buffer that stores the payload, or NULL */
    work *receiver;           /* the receive with which it is matched, or NULL */
    work *sender;             /* the send, if it is one of this rank to itself, or NULL */
} tagged_message;

/** The traffic over a channel of TRAFFIC_TAGGED. */
typedef struct tagged_peer {
    channel *on;
    struct tagged_peer *next;             /* in the circular list of all peers */
    work *queue, **queue_end;             /* sends that are not completely sent, in call order */
    work *sending;                        /* the send of the queue that is partly sent, or NULL */
    work *asked, **asked_end;             /* sends whose questions wait for a grant */
    tagged_message *grants, **grants_end; /* grants that are not sent yet */
    tagged_message *in;                   /* the message whose frames are arriving, or NULL */
    uint64_t sends, arrived, questions;   /* sends, received messages and own questions so far */
    uint16_t frames_out, frames_in;       /* low bits of the numbers of frames */
    size_t ahead;                         /* bytes sent ahead for which no credit has arrived */
    size_t owed;        /* bytes that were freed here and not announced by a credit */
    size_t unannounced; /* bytes received ahead and not announced by a credit, freed or not */
    int32_t named;      /* receives that wait for this peer only */
    int32_t open;       /* sends in the queue whose gates are open */
} tagged_peer;

/** The tagged traffic of a communicator. */
typedef struct tagged_traffic {
    tagged_peer *next_visited;          /* the peer with which the next tagged_turn() starts */
    work *posted, **posted_end;         /* receives without a message, in call order */
    int32_t any;                        /* the number of them that accept any source */
    tagged_message *early, **early_end; /* messages without a receive, in order of arrival */
    tagged_message *spare;              /* records for later messages */
    uint64_t recvs, self_sends;         /* calls so far */
    size_t bytes;                       /* memory for records and for stored payload */
} tagged_traffic;

/** @return an empty record; NULL if there is no memory. */
tagged_message *tagged_message_new(ring_comm *comm);
/** Frees the stored payload of a message, and keeps its record for later messages. */
void tagged_message_drop(ring_comm *comm, tagged_message *m);
/** Counts the bytes of the message in the window as freed. A later credit announces them. */
void tagged_let_go(tagged_message *m);
/** @return true if a grant, a credit or a message can be sent to the peer. */
bool tagged_wants_out(const tagged_peer *p);
/** @return true if a work waits for frames from the peer. */
bool tagged_listens(const tagged_peer *p);
/** @return a work that cannot end without this peer; NULL: none. */
work *tagged_first_waiter(const tagged_peer *p);
/** @return the first send in the queue that may be sent; NULL: none. */
work *tagged_next_to_send(const tagged_peer *p);
/** Creates the tagged_peer of a new channel of TRAFFIC_TAGGED. */
ring_status tagged_peer_new(channel *c);
/** Drops the message of a work that ends before its message is received. */
void tagged_forget(work *w);
/** Drops all messages when all works end. */
void tagged_clear(ring_comm *comm);
/** Frees the records of all messages. */
void tagged_free(ring_comm *comm);

#endif

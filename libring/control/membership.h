/* SPDX-License-Identifier: Apache-2.0
 *
 * membership: this rank's part in one communicator, as the control thread sees it: the state, the
 * connections, and who does what with each message. The lock (control_thread.h) guards all of
 * it but what is atomic; all functions of this header are called with it held.
 *
 * What happens is told to the noun that it concerns, each in its own file: gathering, visiting,
 * handout, barrier, verdict, departure, heartbeat. Each may have hear (a message of its kinds
 * came), speak (compose the next message for a connection, if there is one) and tick (something
 * is due).
 */
#ifndef RING_CONTROL_MEMBERSHIP_H
#define RING_CONTROL_MEMBERSHIP_H

#include "acceptor.h"
#include "connection.h"
#include "control.h"
#include "dialer.h"
#include "tree.h"

#include <stdatomic.h>

enum control_state {
    STATE_JOINING, /* rank 0: gathers cards; others: find rank 0, bring theirs          */
    STATE_CARDS,   /* has all cards, and hands them to the ranks below it               */
    STATE_LINKING, /* the caller opens links and agrees                                 */
    STATE_RUNNING, /* control_start() was called                                        */
    STATE_LEAVING  /* control_leave() was called                                        */
};

enum { CONTROL_REFUSALS_KEPT = 8 };

typedef struct membership {
    control_world world;   /* first: what the other rooms see */
    control_client client;
    enum control_state state;
    bool served;           /* the thread knows it             */
    bool started;          /* it was running                  */
    pthread_cond_t changed; /* something that a caller may wait for */

    handshake_terms job;   /* of the rendezvous               */
    handshake_terms terms; /* of all else                     */
    acceptor rendezvous, tcp, local;
    connection *connections;
    dialer *dialers;

    /* Joining. */
    int cards_here;        /* rank 0: ranks that came; others: cards from above         */
    int told;              /* rank 0: ranks that know already that it failed            */
    bool at_rank_0;        /* others: rank 0 has welcomed this rank                     */
    bool warned;           /* of a stranger in rank 0's place                           */
    bool one_place;        /* rank 0 is at one place only                               */

    /* The barrier of the start. */
    int entered, passed;
    int below[CONTROL_FANOUT]; /* how far the ranks below each child are                */

    /* The verdict. */
    _Atomic int verdict;
    char text[CONTROL_TEXT];   /* written once, before the verdict                      */
    control_message proposal;
    bool proposed;
    double decide_by;          /* without an answer from above, this rank's own holds   */
    double bypass_at;          /* neighbours that have not answered are gone around     */
    void (*wake)(void *);
    void *wake_context;

    /* Who has left. */
    atomic_bool *left;         /* [size] */
    int *leavers;              /* [size], in the order in which it was heard            */
    int leaver_count;
    bool *unreachable;         /* [size] did not answer while a way up was sought       */
    int unanswered;            /* the latest of them that was silent, -1                */
    double attach_at;          /* when a new way up is due                              */
    double stop_by;            /* of leaving                                            */

    control_sink *sink;
    void *sink_context;

    /* Refused calls. */
    control_message refusals[CONTROL_REFUSALS_KEPT];
    int refusal_count;         /* heard and made so far */
    int *refusals_of;          /* [size] the latest of each rank */
    control_refusal_sink *on_refusal;
    void *on_refusal_context;

    uint64_t messages_sent, bytes_sent;
} membership;

static inline membership *membership_of(control_world *world)
{
    return (membership *)world;
}

static inline const membership *membership_at(const control_world *world)
{
    return (const membership *)world;
}

static inline bool membership_is_decided(const membership *m)
{
    return atomic_load_explicit(&m->verdict, memory_order_relaxed) != RING_OK;
}

/** A membership with this rank's card; the thread does not serve it yet. Not locked. */
ring_status membership_new(const settings *s, int size, int rank, uint32_t transports,
                           const char *launcher, membership **out);
/** Has the thread serve it. Not locked. */
ring_status membership_serve(membership *m);
/** Ends all that is open. */
void membership_close(membership *m);
void membership_free(membership *m);

/** "rank 2 (host7, pid 123)". */
void membership_name(const membership *m, int rank, char *out, size_t size);
/** The connection that leads up: to the lowest rank among the neighbours, below this one; while
 *  joining to rank 0. NULL: this rank is the top. */
connection *membership_up(const membership *m);
/** @return true if it is on this host: AF_UNIX reaches it. */
bool membership_is_local(const membership *m, int rank);
connection *membership_edge_to(const membership *m, int peer);

/** Something changed: says what is due now on all connections, and wakes who waits. */
void membership_flush(membership *m);
/** Frees what has ended; at the end of each event. */
void membership_after_event(membership *m);
/** tick() no later than at @p moment. */
static inline void membership_due(membership *m, double moment)
{
    control_due(&m->client, moment);
}
/** Starts a dialer like @p d, which tells whom, how, and what to do in the end. */
ring_status membership_dial(membership *m, const dialer *d);
/** The same to where @p peer listens: on its AF_UNIX name where @p local. */
ring_status membership_dial_rank(membership *m, int peer, bool local, const dialer *like);
/** Ends dialers of one handshake_kind, or all (0), without a word. */
void membership_drop_dialers(membership *m, int kind);
/** What came over @p c breaks the rules: ends the communicator. */
void membership_nonsense(membership *m, const connection *c);

/* For connections. */
void membership_hear(membership *m, connection *c, control_message *message);
void membership_lose(membership *m, connection *c);
bool membership_speak(membership *m, connection *c, control_message *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * membership: this rank's part in what one start made, as the control thread sees it: the state,
 * the connections, the communicators (group.h), and who does what with each message. The lock
 * (control_thread.h) guards all of it but what is atomic; all functions of this header are called
 * with it held.
 *
 * What happens is told to the noun that it concerns, each in its own file: gathering, visiting,
 * handout, barrier, verdict, bulletin, departure, heartbeat, shrink, roll. Each may have hear (a
 * message of its kinds came), speak (compose the next message for a connection, if there is one)
 * and tick (something is due).
 */
#ifndef RING_CONTROL_MEMBERSHIP_H
#define RING_CONTROL_MEMBERSHIP_H

#include "acceptor.h"
#include "connection.h"
#include "control.h"
#include "dialer.h"
#include "group.h"
#include "tree.h"

enum control_state {
    STATE_JOINING, /* rank 0: gathers cards; others: find rank 0, bring theirs          */
    STATE_CARDS,   /* has all cards, and hands them to the ranks below it               */
    STATE_LINKING, /* the caller makes its part and agrees                              */
    STATE_RUNNING, /* control_start() was called                                        */
    STATE_LEAVING  /* control_leave() was called                                        */
};

/** Notes to all, see bulletin.h. */
typedef struct bulletin {
    control_message *notes; /* [room] the latest ones, number i at i % room */
    int count, room;
} bulletin;
enum { BULLETIN_LASTING, BULLETIN_RECENT, BULLETINS, BULLETIN_STATEMENTS = 32 };
/** How communicators ended: the latest that are kept, beside two for each rank; half of them go at
 *  once. */
enum { BULLETIN_ENDS = 256 };

/** A reason to end a communicator that the top has not answered, see verdict.h. */
typedef struct proposal {
    control_message message;
    int told;         /* to whom; -1: nobody            */
    double decide_by; /* without an answer it holds     */
    struct proposal *next;
} proposal;

typedef struct roll roll;               /* roll.c         */
typedef struct held_socket held_socket; /* data_sockets.c */

enum { GROUPS_LEFT_KEPT = 256, SEEN_STATEMENTS = 64 };

/** Which statements of a rank came: number latest - i if bit i is set. */
typedef struct statements_seen {
    int latest;
    uint64_t bits;
} statements_seen;

typedef struct membership {
    union {
        control_world world; /* all ranks                                             */
        group all;           /* the communicator of the start, which begins with that */
    };
    group *groups;                       /* those that are not left         */
    uint64_t left_ids[GROUPS_LEFT_KEPT]; /* of those that were left, the latest */
    size_t left_groups;
    int references; /* those that are not freed        */
    uint32_t ids_given;
    control_client client;
    enum control_state state;
    bool served;            /* the thread knows it             */
    bool started;           /* it was running                  */
    pthread_cond_t changed; /* something that a caller may wait for */

    handshake_terms *job; /* of the rendezvous; both lie in a page that is locked and not dumped */
    handshake_terms *terms; /* of all else                     */
    acceptor rendezvous, tcp, local;
    double lacks_since, lacked_at; /* no descriptor for who comes: since when, and last */
    connection *connections;
    dialer *dialers;

    /* Joining. */
    int cards_here;      /* rank 0: ranks that came; others: cards from above */
    int told;            /* rank 0: ranks, not lost ones, that know of its failure */
    bool at_rank_0;      /* others: rank 0 has welcomed this rank */
    bool came_back;      /* others: to rank 0, after the first connection broke */
    net_address root_at; /* others: where rank 0 was found */
    bool warned;         /* of a stranger in rank 0's place */
    bool one_place;      /* rank 0 is at one place only */

    /* The barrier of the start. */
    int entered, passed;
    int below[CONTROL_FANOUT]; /* how far the ranks below each child are                */

    /* What all are told. */
    bulletin bulletins[BULLETINS];
    double posted_at;               /* the latest note that lasts                            */
    statements_seen *statements_of; /* [size] by rank                          */
    proposal *proposals;

    /* Who is lost, and who has left. */
    enum loss *lost;   /* [size] */
    double lost_at;    /* the latest                                            */
    atomic_bool *left; /* [size] */
    int *leavers;      /* [size], in the order in which it was heard            */
    int leaver_count;
    bool *unreachable; /* [size] did not answer while a way up was sought       */
    int unanswered;    /* the latest of them that was silent, -1                */
    double attach_at;  /* when a new way up is due                              */
    double adopt_at;   /* when those should be here whose way up this rank is   */
    double stop_by;    /* of leaving                                            */

    struct roll *rolls;               /* that ranks have come to                     */
    struct roll_caller *roll_callers; /* calls of this rank that wait for their ends */

    held_socket *held; /* data sockets that nobody takes yet                    */
    int held_count;

    uint64_t messages_sent, bytes_sent;
} membership;

/** @return true if the start has failed. */
static inline bool membership_has_failed(const membership *m)
{
    return !m->started && group_is_decided(&m->all);
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
/** The connection that leads up: to the lowest rank among the neighbours, below this one and not
 *  lost; while joining to rank 0. NULL: this rank is the top. */
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
/** Starts a dialer like this one, which tells whom, how, and what to do in the end. */
ring_status membership_dial(membership *m, const dialer *like);
/** The same to where @p peer listens: on its AF_UNIX name where @p local. */
ring_status membership_dial_rank(membership *m, int peer, bool local, const dialer *like);
/** Ends dialers of one handshake_kind, or all (0), without a word. */
void membership_drop_dialers(membership *m, int kind);
/** What came over @p c breaks the rules: its peer is lost, or the start. */
void membership_nonsense(membership *m, const connection *c);
/** The same, with what the peer did, e.g. "sent nothing", and the status of a start that ends
 *  so. */
void membership_distrust(membership *m, const connection *c, ring_status status, const char *what);

/* For connections. */
void membership_hear(membership *m, connection *c, control_message *message);
void membership_lose(membership *m, connection *c);
bool membership_speak(membership *m, connection *c, control_message *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * membership state: holds the state of one start on this rank: its phase, its connections and its
 * communicators (group.h). The lock (control_thread.h) guards all of it except atomics; functions
 * that take a membership are called under the lock unless their comment says otherwise.
 */
#ifndef RING_CONTROL_MEMBERSHIP_STATE_H
#define RING_CONTROL_MEMBERSHIP_STATE_H

#include "acceptor.h"
#include "connection.h"
#include "control.h"
#include "dialer.h"
#include "group.h"
#include "tree.h"

enum control_state {
    STATE_JOINING, /* rank 0 gathers the cards; the others find it and send theirs */
    STATE_CARDS,   /* all cards have arrived, and are sent to the ranks below */
    STATE_LINKING, /* the caller opens its links, and calls control_agree() */
    STATE_RUNNING, /* control_start() was called */
    STATE_LEAVING  /* control_leave() was called for the last communicator */
};

/** A log of notes to all ranks, see bulletin.h. */
typedef struct bulletin {
    control_message *notes; /* [room] the latest notes; note i is at i % room */
    int count, room;
} bulletin;
enum { BULLETIN_LASTING, BULLETIN_RECENT, BULLETINS, BULLETIN_STATEMENTS = 32 };
/** The limit of notes about ended communicators, besides two for each rank. When it is exceeded,
 *  half of this number are dropped at once. */
enum { BULLETIN_ENDS = 256 };

typedef struct proposal proposal;       /* verdict.c      */
typedef struct roll roll;               /* roll.c         */
typedef struct held_socket held_socket; /* data_sockets.c */

enum { GROUPS_LEFT_KEPT = 256, SEEN_STATEMENTS = 64 };

/** The statements of a rank that have arrived: bit i stands for number latest - i. */
typedef struct statements_seen {
    int latest;
    uint64_t bits;
} statements_seen;

/** The state of a rank of the membership, as far as this rank knows. */
typedef struct rank_state {
    enum loss lost;
    atomic_bool left;
    bool unreachable; /* it did not answer when this rank needed a way up */
    statements_seen statements;
} rank_state;

/** The functions that handle messages of one kind; each may be NULL. */
typedef struct control_rule {
    void (*receive)(struct membership *m, connection *c, const control_message *message);
    /* Called for a new note to all ranks, once; then for each communicator that it is about. */
    void (*note)(struct membership *m, const control_message *note);
    void (*group_note)(group *g, const control_message *note);
} control_rule;

/** The callbacks by which lower files report events to the parts, which they do not include
 *  (dispatch.h). */
typedef struct control_dispatch {
    const control_rule *rules; /* [CONTROL_KINDS] */
    void (*receive)(struct membership *m, connection *c, control_message *message);
    /** Reports that the peer of @p c cannot be trusted: see losses_distrust(). */
    void (*distrust)(struct membership *m, const connection *c, ring_status status,
                     const char *what);
    /** Composes the next message for @p c. @return false if there is none. */
    bool (*compose)(struct membership *m, connection *c, control_message *out);
    void (*on_close)(struct membership *m, connection *c); /* before @p c is closed */
    void (*settle)(struct membership *m);                  /* at the end of each event */
    void (*tick)(control_client *client, double now, double stall);
} control_dispatch;

typedef struct membership {
    union {
        control_world world; /* all ranks */
        group all;           /* the communicator of the start, which begins with its world */
    };
    group *groups;                       /* communicators that this rank has not left */
    uint64_t left_ids[GROUPS_LEFT_KEPT]; /* the latest communicators that it has left */
    size_t left_groups;
    int references; /* communicators that are not freed */
    uint32_t ids_given;
    const control_dispatch *dispatch;
    control_client client;
    enum control_state state;
    bool served;            /* the control thread serves it */
    bool started;           /* control_start() was called */
    pthread_cond_t changed; /* signalled on every change that a caller may wait for */

    handshake_terms *job;   /* of joining; both are in a page that is locked and never dumped */
    handshake_terms *terms; /* of all later handshakes */
    acceptor rendezvous, tcp, local;
    struct {
        double since, last;
    } lack; /* the time in which no descriptor was free for new connections */
    connection *connections;
    dialer *dialers;
    rank_state *ranks; /* [size] */
    struct {
        uint64_t messages, bytes, beats;
    } sent;

    struct {
        int cards_here;      /* cards that have arrived, this rank's own included at rank 0 */
        int notified;        /* at rank 0: ranks, except lost ones, that know of its failure */
        bool at_rank_0;      /* other ranks: rank 0 has welcomed this rank */
        bool came_back;      /* other ranks: it redialed rank 0 after the first connection broke */
        net_address root_at; /* other ranks: the address where rank 0 was found */
        bool warned;         /* a warning of a stranger at rank 0's address was logged */
        bool one_place;      /* rank 0 has only one possible address */
    } start;                 /* gathering.c, joining.c, handout.c */
    struct {
        int entered, passed;       /* barriers, counted from 1 */
        int below[CONTROL_FANOUT]; /* the barrier that all ranks below each child have reached */
    } barrier;                     /* of the start: barrier.c */

    bulletin bulletins[BULLETINS]; /* notes to all ranks: bulletin.c */
    double posted_at;              /* the time of the latest lasting note */
    proposal *proposals;           /* verdict.c */
    struct {
        double lost_at;   /* the time of the latest loss */
        int unanswered;   /* the latest rank that did not answer a dial in time; -1: none */
        double attach_at; /* when to dial a new way up */
        double adopt_at;  /* when ranks whose way up is now this rank should have connected */
    } ways;               /* losses.c */
    struct {
        int *leavers; /* [size], in the order in which this rank learned of them */
        int count;
        double stop_by; /* the latest time at which this rank leaves */
    } goodbyes;         /* departure.c */
    struct {
        struct roll *rolls;
        struct roll_caller *callers; /* calls of this rank that wait for the end of a round */
    } calls;                         /* roll.c */
    struct {
        held_socket *sockets; /* waiting for a sink */
        int count;
    } held; /* data_sockets.c */
} membership;

/** @return true if the start has failed. */
static inline bool membership_has_failed(const membership *m)
{
    return !m->started && group_is_decided(&m->all);
}

static inline bool membership_has_left(const membership *m, int rank)
{
    return atomic_load_explicit(&m->ranks[rank].left, memory_order_relaxed);
}

/** @return true unless the rank is lost or has left. */
static inline bool membership_has(const membership *m, int rank)
{
    return !membership_has_left(m, rank) && m->ranks[rank].lost == LOSS_NONE;
}

/** @return true if the rank can be reached by AF_UNIX. */
static inline bool membership_is_local(const membership *m, int rank)
{
    return card_is_local(&m->world.cards[rank], &m->world.cards[m->world.rank]);
}

/** Makes the thread call tick() at @p moment or earlier. */
static inline void membership_due(membership *m, double moment)
{
    control_due(&m->client, moment);
}

#endif

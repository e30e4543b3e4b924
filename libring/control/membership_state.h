/* SPDX-License-Identifier: Apache-2.0
 *
 * membership state: what this rank knows in one start, as the control thread sees it: the phase,
 * the connections, and the communicators (group.h). The lock (control_thread.h) guards all of it
 * except atomics; all functions with a membership are called with it held, unless they say
 * otherwise.
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
    STATE_JOINING, /* rank 0: gathers cards; others: find rank 0, bring theirs */
    STATE_CARDS,   /* has all cards, and hands them to the ranks below it */
    STATE_LINKING, /* the caller makes its part and agrees */
    STATE_RUNNING, /* control_start() was called                                        */
    STATE_LEAVING  /* control_leave() was called                                        */
};

/** Notes to all ranks, see bulletin.h. */
typedef struct bulletin {
    control_message *notes; /* [room] the latest ones, number i at i % room */
    int count, room;
} bulletin;
enum { BULLETIN_LASTING, BULLETIN_RECENT, BULLETINS, BULLETIN_STATEMENTS = 32 };
/** The most notes about ended communicators, besides two for each rank; half of them are dropped at
 *  once. */
enum { BULLETIN_ENDS = 256 };

typedef struct proposal proposal;       /* verdict.c      */
typedef struct roll roll;               /* roll.c         */
typedef struct held_socket held_socket; /* data_sockets.c */

enum { GROUPS_LEFT_KEPT = 256, SEEN_STATEMENTS = 64 };

/** The statements of a rank that were heard: number latest - i if bit i is set. */
typedef struct statements_seen {
    int latest;
    uint64_t bits;
} statements_seen;

/** The state of a rank of the membership, as far as this one knows. */
typedef struct rank_state {
    enum loss lost;
    atomic_bool left;
    bool unreachable; /* it did not answer while a way up was sought */
    statements_seen statements;
} rank_state;

/** The rule for messages of one kind: functions to call, NULL: none. */
typedef struct control_rule {
    void (*receive)(struct membership *m, connection *c, const control_message *message);
    /* A new note to all ranks: once, then for each communicator that it is about. */
    void (*note)(struct membership *m, const control_message *note);
    void (*group_note)(group *g, const control_message *note);
} control_rule;

/** The way up of events, from files that know none of the parts (dispatch.h). */
typedef struct control_dispatch {
    const control_rule *rules; /* [CONTROL_KINDS] */
    void (*receive)(struct membership *m, connection *c, control_message *message);
    /** The peer of @p c is not to be trusted: see losses_distrust(). */
    void (*distrust)(struct membership *m, const connection *c, ring_status status,
                     const char *what);
    /** Composes the next message for @p c. @return false: there is none. */
    bool (*compose)(struct membership *m, connection *c, control_message *out);
    void (*on_close)(struct membership *m, connection *c); /* it is about to be closed */
    void (*settle)(struct membership *m);                  /* at the end of each event */
    void (*tick)(control_client *client, double now, double stall);
} control_dispatch;

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
    const control_dispatch *dispatch;
    control_client client;
    enum control_state state;
    bool served;            /* the thread serves it */
    bool started;           /* it was running                  */
    pthread_cond_t changed; /* signalled on every change that a caller may wait for */

    handshake_terms *job; /* of the rendezvous; both lie in a page that is locked and not dumped */
    handshake_terms *terms; /* of all later handshakes */
    acceptor rendezvous, tcp, local;
    struct {
        double since, last;
    } lack; /* of a descriptor for newcomers */
    connection *connections;
    dialer *dialers;
    rank_state *ranks; /* [size] */
    struct {
        uint64_t messages, bytes, beats;
    } sent;

    struct {
        int cards_here;      /* rank 0: ranks that came; others: cards from above */
        int notified;        /* rank 0: ranks, not lost ones, that know of its failure */
        bool at_rank_0;      /* others: rank 0 has welcomed this rank */
        bool came_back;      /* others: to rank 0, after the first connection broke */
        net_address root_at; /* others: where rank 0 was found */
        bool warned;         /* of a stranger at rank 0's address */
        bool one_place;      /* there is one address only for rank 0 */
    } start;                 /* gathering.c, joining.c, handout.c */
    struct {
        int entered, passed;
        int below[CONTROL_FANOUT]; /* how far the ranks below each child are */
    } barrier;                     /* of the start: barrier.c */

    bulletin bulletins[BULLETINS]; /* notes to all ranks: bulletin.c */
    double posted_at;              /* the time of the latest lasting note */
    proposal *proposals;           /* verdict.c */
    struct {
        double lost_at;   /* the latest loss */
        int unanswered;   /* the latest unreachable rank that was silent, -1 */
        double attach_at; /* when a new way up is due */
        double adopt_at;  /* when ranks should be here whose way up is now this rank */
    } ways;               /* losses.c */
    struct {
        int *leavers; /* [size], in the order in which it was heard */
        int count;
        double stop_by; /* the end of this rank's leaving */
    } goodbyes;         /* departure.c */
    struct {
        struct roll *rolls;          /* with calls */
        struct roll_caller *callers; /* calls of this rank that wait for the end of a round */
    } calls;                         /* roll.c */
    struct {
        held_socket *sockets; /* without a sink yet */
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

/** @return true if the rank is on this host: AF_UNIX reaches it. */
static inline bool membership_is_local(const membership *m, int rank)
{
    return card_is_local(&m->world.cards[rank], &m->world.cards[m->world.rank]);
}

/** tick() no later than at @p moment. */
static inline void membership_due(membership *m, double moment)
{
    control_due(&m->client, moment);
}

#endif

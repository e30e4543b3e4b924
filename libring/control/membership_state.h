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
    STATE_JOINING, /* rank 0 gathers the cards; the other ranks find rank 0 and send their cards */
    STATE_CARDS,   /* all cards have arrived, and are being sent to the ranks below */
    STATE_LINKING, /* the caller opens its links, and calls control_agree() */
    STATE_RUNNING, /* control_start() was called */
    STATE_LEAVING  /* control_leave() was called for the last communicator */
};

/** A log of notes, which are messages to all ranks, see bulletin.h. */
typedef struct bulletin {
    control_message *notes; /* [room] the latest notes; note i is at i % room */
    int count; /* of notes; in BULLETIN_RECENT, those that were overwritten count, too */
    int room;  /* the length of `notes` */
} bulletin;
enum { BULLETIN_LASTING, BULLETIN_RECENT, BULLETINS, BULLETIN_STATEMENTS = 32 };
/** The limit of kept notes about ended communicators is this number and two for each rank, see
 *  bulletin_most_ends(). When it is exceeded, BULLETIN_ENDS / 2 notes more than necessary are
 *  dropped at once. */
enum { BULLETIN_ENDS = 256 };

typedef struct proposal proposal;       /* verdict.c      */
typedef struct roll roll;               /* roll.c         */
typedef struct held_socket held_socket; /* data_sockets.c */

enum { GROUPS_LEFT_KEPT = 256, SEEN_STATEMENTS = 64 };

/** The numbers of the statements of one rank that have arrived: bit i is set if number latest - i
 *  has arrived. */
typedef struct statements_seen {
    int latest;
    uint64_t bits;
} statements_seen;

/** The state of another rank of the membership, as far as this rank has been notified. */
typedef struct rank_state {
    enum loss lost;
    atomic_bool left;           /* it has said goodbye */
    bool unreachable;           /* a dial to it has failed since the last one that succeeded */
    statements_seen statements; /* its statements */
} rank_state;

/** The functions that handle messages of one kind; each may be NULL. */
typedef struct control_rule {
    /** Called for each message that arrives over @p c. */
    void (*receive)(struct membership *m, connection *c, const control_message *message);
    /** Called once for each new note, before group_note(). */
    void (*note)(struct membership *m, const control_message *note);
    /** Called for a note and each communicator that it is about. When this rank creates a
     *  communicator, it is called for the kept notes about it. */
    void (*group_note)(group *g, const control_message *note);
} control_rule;

/** The callbacks by which lower files, such as connection.c, report events to the parts of control
 *  (dispatch.h) without including their headers. */
typedef struct control_dispatch {
    const control_rule *rules; /* [CONTROL_KINDS] */
    /** Checks and handles a message that has arrived over @p c. */
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
    uint64_t left_ids[GROUPS_LEFT_KEPT]; /* ids of the communicators that it has left most lately */
    size_t left_groups;                  /* the number of communicators that it has left */
    int references;                      /* communicators that are not freed */
    uint32_t ids_given;                  /* results of group_new_id() so far */
    const control_dispatch *dispatch;
    control_client client;
    enum control_state state;
    bool served;            /* the control thread serves it */
    bool started;           /* control_start() was called */
    pthread_cond_t changed; /* signalled on every change that a caller may wait for */

    /* The keys and expectations of handshakes: of joining, and of all later ones. Both are in a
     * page that is locked in memory and left out of core dumps. */
    handshake_terms *job, *terms;
    acceptor rendezvous, tcp, local; /* the listeners: rank 0's for joining ranks; for members */
    struct {
        double since, last; /* the first and the latest failure of a series */
    } lack;                 /* failures to accept a connection because no descriptor was free */
    connection *connections;
    dialer *dialers;
    rank_state *ranks; /* [size] */
    struct {
        uint64_t messages, bytes, beats;
    } sent;

    struct {
        int cards_here;      /* the number of cards that have arrived; rank 0 counts its own card */
        int notified;        /* at rank 0: how many ranks, without lost ones, got its failure */
        bool at_rank_0;      /* other ranks: rank 0 has admitted this rank */
        bool came_back;      /* other ranks: it redialed rank 0 after the first connection broke */
        bool moved;          /* other ranks: the maker of the id has sent this rank to rank 0 */
        net_address root_at; /* the address that was dialed last: that of rank 0; at rank 0, that of
                                the maker */
        control_source
            maker;      /* rank 0: the connection by which the maker of the id sends ranks here */
        bool warned;    /* the warning of a stranger at rank 0's address was logged */
        bool one_place; /* rank 0 has only one possible address */
    } start;            /* gathering.c, joining.c, handout.c */
    struct {
        int entered, passed;       /* the numbers, from 1, of the latest barriers of this rank */
        int below[CONTROL_FANOUT]; /* [child] the latest barrier of all ranks in its subtree */
    } barrier;                     /* barriers of the start: barrier.c */

    bulletin bulletins[BULLETINS]; /* notes to all ranks: bulletin.c */
    double posted_at;              /* the time of the latest lasting note */
    proposal *proposals;           /* verdict.c */
    struct {
        double lost_at; /* the time of the latest loss, or of the end of a stall of this process */
        int unanswered; /* the latest rank that did not answer a dial in time; -1: none */
        double attach_at; /* the time at which this rank dials a new way up */
        double adopt_at;  /* the time at which this rank dials the ranks whose way up it now is, if
                             they have not connected by then */
    } ways;               /* the ways up: losses.c */
    struct {
        int *leavers; /* [size], in the order in which this rank learned of them */
        int count;
        double stop_by; /* the time at which this rank leaves even without answers */
    } goodbyes;         /* departure.c */
    struct {
        struct roll *rolls;
        struct roll_caller *callers; /* this rank's calls that wait for the end of a round */
    } calls;                         /* roll.c */
    struct {
        held_socket *sockets; /* data sockets that peers dialed before there was a sink for them */
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

/** @return true if the rank is neither lost nor has left. */
static inline bool membership_has(const membership *m, int rank)
{
    return !membership_has_left(m, rank) && m->ranks[rank].lost == LOSS_NONE;
}

/** @return true if the rank can be reached through its AF_UNIX socket. */
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

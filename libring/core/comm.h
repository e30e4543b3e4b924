/* SPDX-License-Identifier: Apache-2.0
 *
 * comm: the communicator: its state, its lock and its end (comm_lock.c, failure.c).
 *
 * Locking: ring_comm.lock guards everything below, except what is constant after init and the
 * verdict (control.h, atomic). The lock is not held while sleeping.
 */
#ifndef RING_COMM_H
#define RING_COMM_H

#include "algo.h"
#include "channel_table.h"
#include "links.h"
#include "self_pair.h"
#include "statements.h"
#include "tagged_traffic.h"

#include <poll.h>
#include <stdatomic.h>

/** Packed signatures of the latest calls: as many as small messages may be unread. */
enum { HISTORY_CALLS = 4096, HISTORY_REFUSED = 0 };

/** How long the collectives have not moved. */
typedef struct comm_stall {
    uint64_t moves, moves_seen;
    double since;
} comm_stall;

/** A piece of scratch memory. It is kept for later works. */
typedef struct scratch {
    struct scratch *next;
    void *data;
    size_t bytes;
    bool shared, used;
} scratch;

/** The arguments and the state of a start by a thread of its own: it returned at once. */
typedef struct comm_start {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over;
    ring_comm *comm;
    settings settings;
    ring_unique_id id;
    uint32_t mask;
    const accelerator *accelerator;
    ring_status status;
} comm_start;

/** The lists of works of a communicator. */
typedef struct comm_works {
    work *first, **end;     /* under way, in call order */
    work *held, **held_end; /* of them, those that the next engine turn advances, by wait.next */
    work *pool;             /* idle */
    work *all;
    work *done, **done_end;  /* finished ones with an on_done to call, first ended first */
    bool calls_done;         /* a thread calls them */
    _Atomic int32_t waiters; /* calls that threads wait for; a waiting thread moves all works */
    _Atomic int orphans;     /* works under way without a waiting thread */
} comm_works;

/** The sleep of threads that wait for works of a communicator, see sleep.h. */
typedef struct comm_sleep {
    struct sleeping_threads *threads;
    _Atomic uint32_t wakes; /* of its sleepers */
    uint32_t wakes_seen;    /* before the latest look */
    atomic_bool by_thread;  /* the progress thread moves its orphans */
    bool watched;           /* the progress thread sleeps on all channels that bear this mark */
    uint64_t watch_mark;
} comm_sleep;

/** Memory that is kept for later calls. */
typedef struct comm_memory {
    posted *posts;
    scratch *scratches;
    scratch *products;              /* for products of src and a factor (RING_PREMUL_SUM) */
    struct list_block *list_blocks; /* [2 * ranks], for checks of lists; NULL: none yet */
} comm_memory;

/** The present engine turn. */
typedef struct comm_turn {
    size_t bytes, most; /* bytes that it has moved, and its limit */
    double looked;      /* when the clock was last read */
} comm_turn;

/** The collectives that were called. */
typedef struct comm_history {
    uint64_t calls;   /* how many */
    uint64_t *packed; /* [HISTORY_CALLS] packed signatures of the latest */
} comm_history;

/** The end of a communicator by a failure, see failure.c. */
typedef struct comm_failure {
    bool pending;       /* control was asked for the verdict and has not given it yet */
    bool seeks_reason;  /* and a statement may say why a link broke */
    _Atomic int status; /* the ring_status that ended the communicator; RING_OK: it lives */
    char text[1024];    /* written once, before status */
} comm_failure;

/** Works that wait for streams of accelerators. */
typedef struct comm_streams {
    int32_t stops; /* works whose stream was not yet seen at their stop */
    double step;   /* length of the next sleep while stops > 0; 0: the first */
    bool late;     /* calls on streams take their numbers when the stream reaches them */
} comm_streams;

/** The place among the communicators of the process, guarded by the lock of members.c. */
typedef struct comm_member {
    struct ring_comm *next;
    int32_t users; /* threads that advance its orphans */
} comm_member;

/** Facts for ring_comm_get_info(). */
typedef struct comm_info {
    const char *algorithm;
    call_signature latest;
    size_t longest; /* elements of its longest block */
    uint64_t bytes_sent, bytes_received, messages_sent;
    double init_seconds;
    int local_rank, local_ranks;
} comm_info;

struct ring_comm {
    int rank, ranks;
    unsigned generation; /* of the process that made it, see fork_generation() */
    control_world *world;
    plan_world plan_world; /* the world, as algorithms see it */
    settings settings;
    struct tuner *tuner;
    struct program_cache *programs;
    channel_table channels;
    struct opening *opening; /* sockets that arrived for links */
    channel *greeting;       /* those whose links are not open yet, by `next_greeting` */
    link_facts links;
    struct device_calls *_Atomic device_calls; /* NULL: accelerators run none */
    bool crowded;                              /* more ranks than cores on this host */
    pthread_mutex_t lock;
    _Atomic int wanting; /* threads that wait for the lock */
    comm_sleep sleep;
    comm_works works;
    self_pair self_pair;
    tagged_traffic tagged;
    comm_memory memory;
    comm_turn turn;
    comm_stall stall;
    statements statements;
    comm_history history;
    struct comm_start *start; /* NULL: its start did not return at once */
    atomic_bool starting;
    comm_failure failure;
    comm_streams streams;
    comm_member member;
    comm_info info;
};

/** Limits of an engine turn, so that deadlines are checked and other threads get the lock. A turn
 *  for orphans moves less: it must not keep the caller waiting. */
enum { TURN_BYTES = 16 << 20, BACKGROUND_TURN_BYTES = 256 << 10 };

static inline void comm_count_moved(ring_comm *comm, size_t bytes)
{
    comm->turn.bytes += bytes;
}

static inline bool comm_turn_is_over(const ring_comm *comm)
{
    return comm->turn.bytes >= comm->turn.most;
}

/** Makes the channel active: engine turns look at it until it is idle. */
static inline void channel_watch(channel *c)
{
    if (c->place >= 0)
        return;
    channel_table *t = &c->comm->channels;
    c->place = t->active_count;
    t->active[t->active_count++] = c;
}

/** Written with the lock held. */
static inline void comm_count_waiter(ring_comm *comm, int change)
{
    const int32_t waiters = atomic_load_explicit(&comm->works.waiters, memory_order_relaxed);
    atomic_store_explicit(&comm->works.waiters, waiters + change, memory_order_relaxed);
}
static inline bool comm_has_waiters(const ring_comm *comm)
{
    return atomic_load_explicit(&comm->works.waiters, memory_order_relaxed) > 0;
}

/** As statements_judge(); quick where none was heard. */
static inline ring_status statements_check(ring_comm *comm)
{
    const bool any = atomic_load_explicit(&comm->statements.any, memory_order_relaxed);
    return any ? statements_judge(comm) : RING_OK;
}

/** Name of a rank's host, for messages. */
static inline const char *comm_host(const ring_comm *comm, int rank)
{
    return comm->world->cards[rank].hostname;
}

/* ---- comm_lock.c ---- */
/** Takes the lock. The progress thread lets threads that wait for it go first. */
void comm_lock_wait(ring_comm *comm);
static inline void comm_lock(ring_comm *comm)
{
    if (pthread_mutex_trylock(&comm->lock) != 0)
        comm_lock_wait(comm);
}
/** Takes the lock, unless another thread holds it, or waits for it or for a call. */
bool comm_try_lock(ring_comm *comm);
/** Releases it, and calls the on_done of works that have ended. Wakes the progress thread if
 *  orphans are left. */
void comm_unlock(ring_comm *comm);

/* ---- comm.c ---- */
/** Waits for the end of its start. @return RING_OK, why the start failed, or an error in a forked
 *  child of the process that made it: what the child holds is a copy without sockets, threads or
 *  peers. @param call  for the text. */
ring_status comm_check_own(const ring_comm *comm, const char *call);

/* ---- failure.c ---- */
/** Ends the communicator by @p status and fail_text(), seen in @p work (may be NULL), as soon as
 *  control has the verdict; returns at once. The first failure wins. */
void comm_fail(ring_comm *comm, const work *w, ring_status status);
/** The same where RING_ERR_PEER may be the fault of @p suspect's peer (may be NULL). */
void comm_fail_by(ring_comm *comm, const work *w, const channel *suspect, ring_status status);
/** Adopts the verdict that a failing communicator asks for, once it is there. In each engine
 *  turn. */
void failure_settle(ring_comm *comm);
/** Waits until a failing communicator has its verdict: some tenths of a second. The lock is
 *  released meanwhile. */
void failure_await(ring_comm *comm);
/** @return RING_OK or what ended the communicator; adopts control's verdict. */
ring_status comm_verdict(ring_comm *comm);
/** The same with the text, once the verdict is there. The caller does not hold the lock. */
ring_status comm_check_alive(ring_comm *comm);
/** @return true if nothing has ended it; quick. */
static inline bool comm_is_fine(const ring_comm *comm)
{
    return atomic_load_explicit(&comm->failure.status, memory_order_acquire) == RING_OK &&
           control_verdict(comm->world) == RING_OK;
}

/* ---- opening.c ---- */
/** Has control deliver data sockets here; to be called before the start's barrier. */
ring_status opening_new(ring_comm *comm);
void opening_stop(ring_comm *comm);
/** Opens links over the sockets that arrived, as far as they go. */
void opening_turn(ring_comm *comm, bool *moved);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * comm: defines the communicator's state, its lock (comm_lock.c) and how it fails (failure.c).
 *
 * Locking: ring_comm.lock guards all fields below, except those that are constant after the start
 * and the verdict (control.h), which is atomic. No thread sleeps with the lock held.
 */
#ifndef RING_COMM_H
#define RING_COMM_H

#include "algo.h"
#include "call_reports.h"
#include "channel_table.h"
#include "links.h"
#include "self_pair.h"
#include "tagged_traffic.h"

#include <poll.h>
#include <stdatomic.h>

/** The number of calls whose packed signatures are kept, and the signature that is kept for a
 *  refused call. No peer lags by as many calls, because a link holds fewer small messages. */
enum { HISTORY_CALLS = 4096, HISTORY_REFUSED = 0 };

/** Measures for how long the collectives have made no progress. */
typedef struct comm_stall {
    uint64_t moves, moves_seen;
    double since;
} comm_stall;

/** A piece of scratch memory, which is kept for later works. */
typedef struct scratch {
    struct scratch *next;
    void *data;
    size_t bytes;
    bool shared, used;
} scratch;

/** The arguments and state of a nonblocking start, which runs in its own thread. */
typedef struct comm_start {
    ring_status (*create)(struct comm_start *s); /* its thread runs this */
    bool derived; /* by a split, so that the rank is not known before the end of the start */
    struct ring_comm *waits_in; /* a split: the communicator whose abort ends it; NULL: it ends
                                   soon. Guarded by `lock` */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t over;
    ring_comm *comm;
    settings settings;
    ring_unique_id id;
    uint32_t mask;
    const accelerator *accelerator;
    control_stop stop; /* a split uses only its `reason`, guarded by `lock` */
    ring_status status;
} comm_start;

/** The lists of works of a communicator. */
typedef struct comm_works {
    work *first, **end;      /* works in flight, in call order */
    work *held, **held_end;  /* works that the next engine turn advances, linked by wait.next */
    bool held_again;         /* one of them can be advanced in this turn */
    work *pool;              /* idle works */
    work *all;               /* all works, idle or not */
    work *done, **done_end;  /* ended works whose on_done is due, in the order of their ends */
    bool calls_done;         /* a thread is calling on_done functions */
    uint64_t started;        /* the number of the latest work, see work.number */
    uint64_t told;           /* the work whose on_done that thread is calling; 0: none */
    _Atomic int32_t waiters; /* calls that threads wait for; a waiting thread advances all works */
    _Atomic int orphans;     /* works in flight that no thread waits for */
} comm_works;

/** The state of threads that sleep until works of the communicator move, see sleep.h. */
typedef struct comm_sleep {
    struct sleeping_threads *threads;
    _Atomic uint32_t wakes; /* counts the times that sleeping threads were woken */
    uint32_t wakes_seen;    /* `wakes` when the engine last read it */
    atomic_bool by_thread;  /* the progress thread advances the communicator's orphans */
    bool polls_all;         /* the progress thread sleeps on all channels with this poll_mark */
    bool brief;             /* and briefly, because no descriptor reports what works wait for */
    uint64_t poll_mark;
} comm_sleep;

/** Memory that is kept for later calls. */
typedef struct comm_memory {
    posted *posts;
    scratch *scratches;
    scratch *products;              /* for products of src and a factor (RING_PREMUL_SUM) */
    struct list_block *list_blocks; /* [2 * ranks], to check list forms; NULL until the first one */
} comm_memory;

/** The current engine turn. */
typedef struct comm_turn {
    size_t bytes, most; /* bytes moved so far, and their limit */
    double looked;      /* when deadlines were last checked */
    double health;      /* when the accelerators are to be checked next */
} comm_turn;

/** The collectives that were called so far. */
typedef struct comm_history {
    uint64_t calls;   /* their number */
    uint64_t *packed; /* [HISTORY_CALLS] packed signatures of the latest ones */
} comm_history;

/** The failure of a communicator, see failure.c. */
typedef struct comm_failure {
    bool pending;       /* control was asked for the verdict and has not answered yet */
    bool seeks_reason;  /* a link broke, and a call report may still explain why */
    _Atomic int status; /* the ring_status that ended the communicator; RING_OK: it is alive */
    char text[1024];    /* written once, before status */
} comm_failure;

/** Events of accelerators, which no descriptor reports. */
typedef struct comm_streams {
    int32_t stops;              /* works whose stream has not reached their stop yet */
    bool carries;               /* graphs may replay calls, whose frames device_proxy.c carries */
    const accelerator *held_of; /* may keep streams stopped for this communicator; else NULL */
    bool released; /* this rank has let go of the streams of failed calls (RING_HOLD_STREAMS) */
    double step;   /* seconds of the next sleep while there are any; 0: before the first */
} comm_streams;

/** The communicator's entry in the list of members.c, guarded by the lock there. */
typedef struct comm_member {
    struct ring_comm *next;
    int32_t users; /* threads that hold it, for example to advance its orphans */
} comm_member;

/** Facts for ring_comm_get_info(). */
typedef struct comm_info {
    const char *algorithm;
    call_signature latest;
    size_t longest; /* elements of the longest block of `latest` */
    uint64_t bytes_sent, bytes_received, messages_sent;
    double init_seconds;
    int local_rank, local_ranks;
} comm_info;

struct ring_comm {
    int rank, ranks;
    unsigned generation; /* fork_generation() of the process that created it */
    control_world *world;
    plan_world plan_world; /* the facts about the ranks that algorithms use */
    settings settings;
    struct tuner *tuner;
    struct program_cache *programs;
    channel_table channels;
    struct opening *opening; /* sockets that arrived for links */
    channel *greeting;       /* channels whose links are not open yet, by `next_greeting` */
    link_facts links;
    const accelerator *accelerator; /* of the thread that made the communicator, or NULL */
    struct device_calls *_Atomic device_calls; /* NULL: accelerators run no calls */
    bool crowded;                              /* ranks on this host share cores */
    pthread_mutex_t lock;
    _Atomic int wanting; /* threads that wait for the lock */
    comm_sleep sleep;
    comm_works works;
    self_pair self_pair;
    tagged_traffic tagged;
    comm_memory memory;
    comm_turn turn;
    comm_stall stall;
    call_reports reports;
    comm_history history;
    struct comm_start *start; /* NULL unless its start was nonblocking */
    atomic_bool starting;
    _Atomic int splits; /* splits of this communicator in progress */
    comm_failure failure;
    comm_streams streams;
    comm_member member;
    comm_info info;
};

/** The most bytes that an engine turn moves, so that deadlines are checked and other threads get
 *  the lock. A turn for orphans moves less, because it must not delay callers. */
enum { TURN_BYTES = 16 << 20, BACKGROUND_TURN_BYTES = 256 << 10 };

static inline void comm_count_moved(ring_comm *comm, size_t bytes)
{
    comm->turn.bytes += bytes;
}

static inline bool comm_turn_is_over(const ring_comm *comm)
{
    return comm->turn.bytes >= comm->turn.most;
}

/** Makes the channel active: engine turns visit it until it is idle. */
static inline void channel_activate(channel *c)
{
    if (c->place >= 0)
        return;
    channel_table *t = &c->comm->channels;
    c->place = t->active_count;
    t->active[t->active_count++] = c;
}

/** Changes the number of waiting calls. The caller holds the lock. */
static inline void comm_count_waiter(ring_comm *comm, int change)
{
    const int32_t waiters = atomic_load_explicit(&comm->works.waiters, memory_order_relaxed);
    atomic_store_explicit(&comm->works.waiters, waiters + change, memory_order_relaxed);
}
static inline bool comm_has_waiters(const ring_comm *comm)
{
    return atomic_load_explicit(&comm->works.waiters, memory_order_relaxed) > 0;
}

/** Judges the call reports of other ranks, see reports_judge(). Without reports, it costs one
 *  atomic load. */
static inline ring_status reports_check(ring_comm *comm)
{
    const bool any = atomic_load_explicit(&comm->reports.any, memory_order_relaxed);
    return any ? reports_judge(comm) : RING_OK;
}

/** @return the name of a rank's host, for messages. */
static inline const char *comm_host(const ring_comm *comm, int rank)
{
    return comm->world->cards[rank].hostname;
}

/* ---- comm_lock.c ---- */
/** Takes a lock that another thread holds. The progress thread gives way to waiting threads. */
void comm_lock_wait(ring_comm *comm);
static inline void comm_lock(ring_comm *comm)
{
    if (pthread_mutex_trylock(&comm->lock) != 0)
        comm_lock_wait(comm);
}
/** Takes the lock unless another thread holds it, waits for it, or waits for a call.
 *  @return true if it was taken. */
bool comm_try_lock(ring_comm *comm);
/** Releases the lock, and calls the on_done functions of works that have ended. Wakes the progress
 *  thread if no other thread advances the orphans. */
void comm_unlock(ring_comm *comm);

/* ---- comm.c ---- */
/** Waits until the communicator has started. @param call  the caller's name, for the error.
 *  @return RING_OK; the reason why the start failed; or RING_ERR_USAGE in a forked child of the
 *  process that created it, which holds only a copy without sockets, threads and peers. */
ring_status comm_check_own(const ring_comm *comm, const char *call);

/* ---- failure.c ---- */
/** Ends the communicator with @p status and the text of fail_text(). Returns at once; the
 *  communicator ends when control has the verdict. Later failures are ignored.
 *  @param w  the work that failed; NULL: none. */
void comm_fail(ring_comm *comm, const work *w, ring_status status);
/** As comm_fail(). @param suspect  the channel whose peer may be the cause of RING_ERR_PEER; NULL:
 *  none. */
void comm_fail_by(ring_comm *comm, const work *w, const channel *suspect, ring_status status);
/** Adopts the verdict of a failing communicator if control has it by now. Called in each engine
 *  turn. */
void failure_settle(ring_comm *comm);
/** Waits until a failing communicator has its verdict, which takes some tenths of a second. The
 *  lock is released meanwhile. */
void failure_await(ring_comm *comm);
/** Adopts control's verdict. @return RING_OK, or the status that ended the communicator. */
ring_status comm_verdict(ring_comm *comm);
/** Waits for a pending verdict. The caller does not hold the lock. @return RING_OK, or the status
 *  of the verdict, with its text in fail_text(). */
ring_status comm_check_alive(ring_comm *comm);
/** @return true if the communicator has not failed. Two atomic loads. */
static inline bool comm_is_fine(const ring_comm *comm)
{
    return atomic_load_explicit(&comm->failure.status, memory_order_acquire) == RING_OK &&
           control_verdict(comm->world) == RING_OK;
}

/* ---- opening.c ---- */
/** Registers with control to receive data sockets. Call it before the barrier of the start. */
ring_status opening_new(ring_comm *comm);
/** Stops receiving data sockets, and closes those over which no link has been opened. */
void opening_stop(ring_comm *comm);
/** Opens links over the sockets that arrived, as far as possible without blocking.
 *  @param[out] moved  set to true if a link was opened. */
void opening_turn(ring_comm *comm, bool *moved);

#endif

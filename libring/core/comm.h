/* SPDX-License-Identifier: Apache-2.0
 *
 * comm: the communicator, and the functions that the files of this room share.
 *
 * Locking: ring_comm.lock guards everything below, except what is constant after init and the
 * verdict (control.h, atomic). The lock is not held while sleeping.
 */
#ifndef RING_COMM_H
#define RING_COMM_H

#include "algo.h"
#include "control.h"
#include "tagged.h"

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

/** Statements of other ranks about their calls (statements.c): at most so many are kept. */
enum { STATEMENTS_HEARD = 16 };
typedef struct statements {
    pthread_mutex_t lock;
    _Atomic bool any;
    bool fresh; /* some are not judged yet: they count as one orphan */
    int count;
    int rank[STATEMENTS_HEARD];
    control_statement of[STATEMENTS_HEARD];
    /* Guarded by ring_comm.lock: */
    uint64_t stated;     /* number of the call that this rank said it waits in, plus 1 */
    uint64_t own_number; /* number of the call that this rank refused last */
    char own[240];       /* the reason of that refusal */
} statements;

/** Sends and recvs of this rank to itself: counts, and those without a partner, oldest first. */
typedef struct self_pair {
    uint64_t sends, recvs;
    work *first, **end; /* by `behind` */
} self_pair;

/** Channels used so far, found by lane, index and rank. */
typedef struct channel_table {
    channel **slots;
    size_t capacity, count;
    channel **active; /* those that the engine looks at, see channel_watch() */
    int32_t active_count;
} channel_table;

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
    char transport[32];
    struct device_calls *_Atomic device_calls; /* NULL: accelerators run none */
    bool crowded;                              /* more ranks than cores on this host */
    bool maps_all;                             /* the links of all pairs map memory */
    bool maps_hosts;                           /* those of all pairs that share a host do */
    bool over_rails; /* hosts are joined by links that may go over several ports */
    bool reaches;    /* some of this rank's links reach memory without mapping it */
    bool registers;  /* and calls make automatic regions for them */
    pthread_mutex_t lock;
    _Atomic int wanting;    /* threads that wait for the lock */
    work *first, **end;     /* works under way, in call order */
    work *held, **held_end; /* of them, those that the next engine turn advances, by `behind` */
    self_pair self_pair;
    tagged_traffic tagged;
    work *pool, *works;     /* idle ones; all of them */
    work *done, **done_end; /* finished works with an on_done to call, first ended first */
    bool calls_done;        /* a thread calls them */
    posted *spare_posts;
    scratch *scratches;
    scratch *products;              /* memory for products of src and a factor (RING_PREMUL_SUM) */
    struct list_block *list_blocks; /* [2 * ranks], for checks of lists; NULL: none yet */
    size_t turn_bytes, turn_most;   /* bytes moved in this engine turn, and its limit */
    double looked;                  /* at the clock, last */
    comm_stall stall;
    statements statements;
    uint64_t calls;           /* collectives so far */
    uint64_t *history;        /* [HISTORY_CALLS] */
    _Atomic int32_t waiters;  /* calls that threads wait for; a waiting thread moves all works */
    _Atomic int orphans;      /* works under way without a waiting thread */
    struct comm_start *start; /* NULL: its start did not return at once */
    atomic_bool starting;
    bool failing;       /* the verdict was asked for and is not here, see failure.c */
    bool seeks_reason;  /* and a statement may say why a link broke */
    _Atomic int broken; /* the ring_status that ended it */
    char error[1024];   /* written once, before broken */
    struct sleeper *sleeper;
    atomic_bool by_thread; /* the progress thread moves its orphans */
    int32_t stops;         /* works whose stream was not yet seen at their stop */
    double stop_step;      /* length of the next sleep while stops > 0; 0: the first */
    bool late;             /* calls behind streams take their numbers when the stream reaches
                              them */
    bool watched;          /* the progress thread sleeps on all channels that bear this mark */
    uint64_t watch_mark;
    struct ring_comm *next_member; /* among the communicators of the process; these two are
                                      guarded by its lock (members.c) */
    int32_t visitors;              /* threads that visit it to move its orphans */
    /* for ring_comm_get_info */
    const char *algorithm;
    call_signature latest;
    size_t latest_longest; /* elements of its longest block */
    uint64_t bytes_sent, bytes_received, messages_sent;
    double init_seconds;
    int local_rank, local_ranks;
};

/** Limits of an engine turn, so that deadlines are checked and other threads get the lock. A turn
 *  for orphans moves less: it must not keep the caller waiting. */
enum { TURN_BYTES = 16 << 20, BACKGROUND_TURN_BYTES = 256 << 10 };

static inline void comm_count_moved(ring_comm *comm, size_t bytes)
{
    comm->turn_bytes += bytes;
}

static inline bool comm_turn_is_over(const ring_comm *comm)
{
    return comm->turn_bytes >= comm->turn_most;
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
    const int32_t waiters = atomic_load_explicit(&comm->waiters, memory_order_relaxed);
    atomic_store_explicit(&comm->waiters, waiters + change, memory_order_relaxed);
}
static inline bool comm_has_waiters(const ring_comm *comm)
{
    return atomic_load_explicit(&comm->waiters, memory_order_relaxed) > 0;
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

/* ---- init.c ---- */
/** Makes a communicator over @p world, which it owns from here. @param parent  NULL: the first one.
 *  @param a  the accelerator that may run its calls; NULL: none. */
ring_status comm_new(control_world *world, const ring_comm *parent, const accelerator *a,
                     double started, ring_comm **out);

/* ---- links.c: which transport joins which pair ---- */
ring_status links_mask(const settings *s, uint32_t *mask);
/** @return the ports that links between hosts use here, 1 where they have none to choose. */
int links_rails(const settings *s, uint32_t mask);
/** @return the InfiniBand settings for transports. */
transport_ib links_ib(const settings *s);
/** @return the transport that joins two ranks, NULL: none. @param[out] number  its number. */
const transport *links_strongest(const ring_comm *comm, int a, int b, uint16_t *number);
/** Finds whether the links of all pairs, or of all that share a host, map memory. From the cards
 *  alone, so all ranks get the same result. */
ring_status links_map(ring_comm *comm);
/** RING_ERR_CONFIG if no transport joins this rank and another one; else notes which ones do. */
ring_status links_check(ring_comm *comm);

/* ---- channel_table.c ---- */
/** @return the channel to @p rank, NULL if none was used so far. */
channel *channel_find(const ring_comm *comm, enum channel_lane lane, int32_t index, int rank);
/** The same, made if need be. */
ring_status channel_get(ring_comm *comm, enum channel_lane lane, int32_t index, int rank,
                        channel **out);
/** Each channel, then NULL. @param[in,out] at  0 at first. */
channel *channels_next(const ring_comm *comm, size_t *at);
/** Closes their links, too. */
void channels_free(ring_comm *comm);

/* ---- opening.c ---- */
/** Has control deliver data sockets here; to be called before the start's barrier. */
ring_status opening_new(ring_comm *comm);
void opening_stop(ring_comm *comm);
/** Opens links over the sockets that arrived, as far as they go. */
void opening_turn(ring_comm *comm, bool *moved);

/* ---- scratch.c ---- */
/** Takes memory for partial sums. RING_IN_PROGRESS while earlier works use all that a communicator
 *  may use, or have still to take theirs. */
ring_status scratch_take(work *w);
/** Takes STAGE_BYTES that links reach, beyond SCRATCH_MOST: only the work whose message comes next
 *  on a channel needs them. */
ring_status scratch_take_stage(work *w);
/** Takes memory for products, beyond SCRATCH_MOST: as much as calls under way need at a time. */
ring_status scratch_take_products(ring_comm *comm, size_t bytes, char **data);
void scratch_give_back(ring_comm *comm, const char *data);
void scratch_free(ring_comm *comm);
/** SCRATCH_MOST: bytes that one communicator uses at a time. STAGE_BYTES: bytes of a message that
 *  one get brings to scratch memory. */
enum { SCRATCH_MOST = 8 << 20, STAGE_BYTES = 128 << 10 };

/* ---- lists.c: v-forms whose blocks lie anywhere ---- */
/** Checks the addresses of the blocks of b->lists, and that written blocks lie apart. */
ring_status lists_check(ring_comm *comm, const program *p, const call_buffers *b);
/** Makes memory of a work for lists_bind() and lists_hold(). */
ring_status lists_make_room(work *w);
void lists_bind(work *w, const call_buffers *b);
/** Holds the regions of a side's blocks by @p hold. @return 0: some block lies in none. */
uint64_t lists_hold(work *w, int side, uint64_t (*hold)(const void *, size_t));
void lists_release(work *w);

/* ---- products.c: RING_PREMUL_SUM ---- */
/** Finds memory for the products of src and this rank's factor, which become the call's src. */
ring_status products_place(ring_comm *comm, const program *p, call_buffers *b);
/** Makes the products, as many as the turn may. RING_IN_PROGRESS: some are still missing. */
ring_status products_make(work *w, bool *moved);

/* ---- steps.c, fold.c: one op of a program, as far as it goes ---- */
ring_status step_run(work *w, const program_op *o, bool *moved);
ring_status fold_run(work *w, const program_op *o, bool *moved);

/* ---- self_pair.c: a rank that sends to itself ---- */
/** Send k meets recv k. RING_IN_PROGRESS: the other one was not called yet; the work waits for it.
 *  @param[in,out] w  either of the two; then the receiver, which is to copy. RING_ERR_MISMATCH. */
ring_status self_pair_meet(work **w);
/** Drops the works that wait for a partner. */
void self_pair_clear(ring_comm *comm);
/** The same for two works that tagged.c has matched: the receiver goes on and ends both. */
ring_status self_pair_join(work *receiver, work *sender);

/* ---- operand.c ---- */
/** The local memory of an operand at the present position of the work. */
char *operand_address(const work *w, const program_op *o, const operand *at);
/** The number of an operand's message on its channel. */
uint64_t operand_message(const work *w, const operand *at, bool out);

/* ---- engine.c ---- */
/** Starts a work and advances it as far as it goes. The caller holds the lock. */
void engine_start(work *w);
/** One pass of progress over all works that can advance. @return true if anything moved. */
bool engine_turn(ring_comm *comm, size_t most_bytes);
/** Checks the clocks: fails the communicator if a work is past its deadline, or stalled by a rank
 *  in another call. */
void engine_look(ring_comm *comm, double now);
/** Ends all works. */
void engine_end_all(ring_comm *comm, ring_status status);
/** The same if the communicator has failed. */
void engine_end_if_failed(ring_comm *comm);

/* ---- wait.c ---- */
/** Waits until the work has ended, or until @p deadline (0: none, but that of its gate); the caller
 *  holds the lock. @return RING_OK or RING_IN_PROGRESS. */
ring_status wait_for_work(work *w, double deadline);
/** Between two looks at several works, of which none is over. @return true when to sleep. */
bool wait_between_looks(unsigned *looks);

/* ---- statements.c ---- */
void statements_listen(ring_comm *comm);
void statements_stop(ring_comm *comm);
/** This rank refuses a call for the reason in fail_text(): the call takes its number. */
void statements_refuse(ring_comm *comm, const call_signature *call);
/** Announces to all ranks that this rank waits in a call. */
void statements_wait(work *w);
/** RING_ERR_MISMATCH if a rank refused a call that this one made, or made another one. */
ring_status statements_judge(ring_comm *comm);
static inline ring_status statements_check(ring_comm *comm)
{
    const bool any = atomic_load_explicit(&comm->statements.any, memory_order_relaxed);
    return any ? statements_judge(comm) : RING_OK;
}

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
    return atomic_load_explicit(&comm->broken, memory_order_acquire) == RING_OK &&
           control_verdict(comm->world) == RING_OK;
}

#endif

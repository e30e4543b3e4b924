/* SPDX-License-Identifier: Apache-2.0
 *
 * work: represents a call in flight. Any thread that holds the communicator's lock may advance a
 * work. It is taken from a pool, is in the communicator's list of works until it has ended, and
 * returns to the pool when no caller holds its handle any more.
 *
 * A call over several channels per peer consists of several works, one for each channel. The first
 * of them is the lead, which ends when all of them have done their parts.
 */
#ifndef RING_CORE_WORK_H
#define RING_CORE_WORK_H

#include "event.h"
#include "program.h"

/** The asynchronous operation of the current op, if any. */
typedef enum work_phase {
    PHASE_NONE,
    PHASE_FETCHING, /* a link is getting bytes of a message */
    PHASE_FETCHED,  /* the bytes are in the work's stage memory */
    PHASE_FOLDING   /* an accelerator is folding */
} work_phase;

/** Products of src and this rank's factor, see products.c. */
typedef struct work_products {
    bool missing;          /* some products are not computed yet */
    const char *of;        /* the caller's src */
    const uintptr_t *list; /* if src is a list: the addresses of its blocks, as in work.bases */
    char *memory;          /* the communicator's memory for the products; NULL: they are in dst */
    double scale;          /* the factor; 1: the call has no products */
    const double *at;      /* the factor in memory of an accelerator; NULL: it is `scale` */
    size_t done;           /* elements of the current block that are computed */
    int32_t block;         /* the current block */
} work_products;

/** The buffers of a call on this rank. */
typedef struct call_buffers {
    const char *src;
    char *dst;
    size_t src_bytes, dst_bytes;
    const accelerator *src_by, *dst_by; /* the accelerator that owns the memory; NULL: the host */
    work_products products;      /* products_place() and lists_bind() fill in all but the scale */
    bool listed;                 /* a list form: a side may have a list of addresses */
    const void *const *lists[2]; /* the caller's addresses of the [ranks] blocks of SRC and DST;
                                    NULL: the side is one buffer. Not used by a bound work */
} call_buffers;

/** @return true if a side is a list of blocks. */
static inline bool has_list(const call_buffers *b)
{
    return b->lists[PLAN_SRC] != NULL || b->lists[PLAN_DST] != NULL;
}

/** The current op of a work and its progress. */
typedef struct work_step {
    int32_t op, slice;
    int32_t runs;     /* slices that are complete */
    size_t position;  /* elements of the op that are complete */
    work_phase phase; /* the operation on the next elements */
    size_t asked;     /* elements that the accelerator folds, in PHASE_FOLDING */
    bool copies;      /* the op is a recv that fold_run() runs */
    ticket over;      /* signals the end of the operation of `phase` */
    posted relay;     /* the message of an eager send */
    int32_t posted;   /* messages of the work that are queued for links */
} work_step;

/** The channel on which a work waits, and its deadline. */
typedef struct work_wait {
    channel *on;   /* NULL: it does not wait on a channel */
    channel *last; /* the channel that it last used or waited on, for errors */
    wait_kind kind;
    uint64_t number;          /* number of the message that it waits for */
    struct work *next;        /* in the channel's waiting works, the held works, the unmatched calls
                                 to this rank itself, or the parts of a call that is starting */
    double timeout, deadline; /* seconds; deadline 0: the timeout has not started */
} work_wait;

/** The gate of a work, which opens when its event is set and its stream has reached its stop. */
typedef struct work_gate {
    ring_event *event; /* NULL: the call waits for no event, or the gate is open */
    bool closed;       /* the gate may still be closed */
} work_gate;

/** The place of a work in the stream of an accelerator. */
typedef struct work_stream {
    accelerator_stop *stop; /* the work starts when the stream reaches it, and holds it until the
                               end of the work, or longer if the work fails (streams_stay()); a run
                               of a device program starts when it drops it */
    bool pending;           /* the stream may not have reached the stop yet */
    bool queued;            /* not held: earlier runs of the accelerator have not ended */
    uint32_t run;           /* of the accelerator, if it runs the call */
    bool stated;            /* reports_wait() has reported this send or receive */
    bool is_given;          /* the caller passed the stream */
} work_stream;

/** The matching of a tagged send or recv, see tagged.h. */
typedef struct work_tagged {
    struct work *next;              /* in the list of sends or receives that it waits in */
    struct tagged_message *message; /* the message of a matched recv, or of a send to itself */
    ring_envelope *envelope;        /* the caller's envelope for a recv, or NULL */
    bool open;                      /* the work's gate is open */
    bool met;                       /* the work is matched, and its ops may run */
} work_tagged;

/** The result of a work, and the callers to which it is reported. */
typedef struct work_result {
    ring_done on_done;
    void *context;
    struct work *next; /* in works.done of its communicator */
    uint32_t handle;   /* its slot in the table of handles; 0: it has no handle */
    int32_t waiters;   /* threads that wait for it */
    bool detached;     /* it has no handle and no waiting thread: only on_done reports its end */
    bool pending;      /* on_done has not been called yet */
    bool orphan;       /* it is in flight and no thread waits for it */
    bool finished;     /* status is final */
    ring_status status;
} work_result;

typedef struct work {
    ring_comm *comm;
    struct work *next, **link; /* in the list of works in flight, in call order; or in the pool */
    struct work *sibling;      /* in the list of all works of the communicator */
    uint64_t number;           /* among the works that were started, from 1 */
    call_signature call;
    uint64_t signature, seq;
    call_buffers buffers;
    uintptr_t *bases[2]; /* [ranks] for SRC and DST: each block's address minus its offset in the
                            contiguous vector, see lists.c; NULL: the side is one buffer */
    struct list_room *list_room;     /* memory for `bases`, kept with the work */
    uint64_t src_region, dst_region; /* regions that the lead holds until the end; 0: none */
    char *scratch, *stage;           /* memory from scratch.h, or NULL */
    const accelerator *by;           /* the accelerator that folds and copies; NULL: the host */
    program *program;
    work_peer *peers; /* [program->peer_count] */
    int32_t peer_cap;
    struct work *lead; /* the first work of its call */
    int32_t parts;     /* in the lead: works of the call that are not complete */
    int32_t index;     /* index of its channels */
    work_step step;
    work_wait wait;
    work_gate gate;
    work_stream stream;
    work_tagged tagged;
    struct work *partner; /* in a send or recv to this rank itself: the matching call */
    bool lends;           /* links may still read the work's memory for frames that were sent */
    work_result result;
} work;

/** @return the first work from @p w on whose call an accelerator runs; NULL if there is none. */
static inline work *work_on_device_from(work *w)
{
    while (w != NULL && !w->call.on_device)
        w = w->next;
    return w;
}
/** @return true if an accelerator ends run @p a before run @p b. Numbers wrap. */
static inline bool work_run_is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}
/** @return the next call number of a collective, or of a send or recv with a peer.
 *  @param packed  the call's packed signature, for the history of collectives.
 *  @param on  the channel of a send or recv; NULL if the peer is this rank itself. */
uint64_t work_take_number(ring_comm *comm, const call_signature *call, uint64_t packed,
                          channel *on);
/** Takes a work from the pool and binds it to a call, with a handle if the options ask for one.
 *  Does not start it. The caller holds the lock. */
ring_status work_new(ring_comm *comm, program *p, const call_buffers *given,
                     const ring_call *options, work **out);
/** Reserves the next message numbers of each channel for this work. A tagged work reserves them
 *  when its message is granted. */
ring_status work_take_messages(work *w);
/** Closes the gates of the call's works until the stream reaches @p stop. They hold @p stop until
 *  they end. */
void work_stop(work *lead, accelerator_stop *stop);
/** @return the timeout of a call with these options, in seconds after it can start; at most
 *  NUMBER_NO_LIMIT. */
double work_timeout(const ring_comm *comm, const ring_call *options);
/** @return true while the event that it waits for is not set. */
bool work_awaits_event(const work *w);
/** @return true while its stream has not reached the stop. */
bool work_awaits_stream(const work *w);
static inline bool work_is_gated(const work *w)
{
    return work_awaits_event(w) || work_awaits_stream(w);
}
/** Stops waiting for the stream, because it has reached the stop or the work ends. */
void work_pass_stop(work *w);
/** Replaces the work's program by one for the same count and type, before an op has run. */
ring_status work_rebind(work *w, program *p);
/** Ends a work that has run its ops. The lead, and with it the call, ends when all works of the
 *  call have run their ops. */
void work_part_done(work *w);
/** Removes a work from the works in flight, and sets its final status. */
void work_finish(work *w, ring_status status);
/** Returns a work to the pool. It has ended, and no handle refers to it. */
void work_recycle(work *w);
/** @return the accelerator that owns the memory of @p buffer; NULL: the host does. */
static inline const accelerator *work_memory_of(const work *w, uint8_t buffer)
{
    if (w->by == NULL || (buffer != PLAN_SRC && buffer != PLAN_DST))
        return NULL;
    return buffer == PLAN_SRC ? w->buffers.src_by : w->buffers.dst_by;
}
/** @return true if links may use the memory at @p at in place, because it is scratch memory or in a
 *  region that the call holds. Other memory may be deregistered during the call. */
bool work_may_lend(const work *w, const char *at);
/** Blocks until no accelerator operation of the work is in flight. */
void work_settle(work *w);
/** Holds a work for the next engine turn, because it cannot start yet or has used up the limit of
 *  this turn. @return RING_IN_PROGRESS. */
ring_status work_hold(work *w);
/** Marks a work as an orphan or not. An orphan is a work in flight that no thread waits for. The
 *  progress thread, and threads that wait for other works, advance it. */
void work_set_orphan(work *w, bool orphan);
/** Lets the streams continue that failed works hold (streams_stay()). */
void works_release_streams(ring_comm *comm);
/** Frees all works; handles that callers still hold keep the calls' results. */
void works_free(ring_comm *comm);

#endif

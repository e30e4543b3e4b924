/* SPDX-License-Identifier: Apache-2.0
 *
 * work: a call under way. It belongs to no thread: any thread that holds the communicator's lock
 * may advance it. It goes from the pool to the list of its communicator, through the waiting lists
 * of channels, and back to the pool when it has ended and no caller holds its handle.
 *
 * A call over several channels a peer is several works, one for each: the first one leads, and ends
 * when all have done their part.
 */
#ifndef RING_CORE_WORK_H
#define RING_CORE_WORK_H

#include "event.h"
#include "program.h"

/** The asynchronous operation of the present op, if any. */
typedef enum work_phase {
    PHASE_NONE,
    PHASE_FETCHING, /* a link gets bytes of a message */
    PHASE_FETCHED,
    PHASE_FOLDING /* an accelerator folds */
} work_phase;

/** Products of src and this rank's factor, see products.c. */
typedef struct work_products {
    bool missing;          /* some are still to be computed */
    const char *of;        /* src as the caller gave it */
    const uintptr_t *list; /* or the addresses of its blocks, as in work.bases */
    char *memory;          /* the communicator's memory that holds them, or NULL */
    double scale;          /* the factor; 1: the call has no products */
    size_t done;           /* elements of the present block */
    int32_t block;
} work_products;

/** The buffers of a call on this rank. */
typedef struct call_buffers {
    const char *src;
    char *dst;
    size_t src_bytes, dst_bytes;
    const accelerator *src_by, *dst_by; /* the accelerator that owns the memory; NULL: the host */
    work_products products;             /* products_place() fills in all but the scale */
    bool listed;                        /* blocks are given by lists of their addresses */
    const void *const *lists[2]; /* the caller's addresses of the [ranks] blocks of SRC and DST;
                                    NULL: the side is one piece. Not used after the work is bound */
} call_buffers;

/** The present op of a work, and how far it has come. */
typedef struct work_step {
    int32_t op, slice;
    int32_t runs;     /* slices that are complete */
    size_t position;  /* elements of the op that are complete */
    work_phase phase; /* of the elements that follow */
    size_t asked;     /* elements that the accelerator folds, in PHASE_FOLDING */
    bool copies;      /* it is a recv that fold_run() carries out */
    ticket over;      /* closes when the operation of the phase ends */
    posted relay;     /* its eager message */
    int32_t posted;   /* messages that were not handed to a link yet */
} work_step;

/** The channel where a work waits, and how long it may. */
typedef struct work_wait {
    channel *on;   /* NULL: it does not wait */
    channel *last; /* the channel where it last waited for a message */
    wait_kind kind;
    uint64_t number;   /* of the message that it waits for */
    struct work *next; /* in the channel's list of waiting works, in the list of held works, or
                          among the parts of a call that is being started */
    double timeout, deadline; /* deadline 0: the clock was not read yet */
} work_wait;

/** An event that must be set before the work may start. */
typedef struct work_gate {
    ring_event *event; /* NULL: there is none */
    bool closed;       /* the event or the stream may still hold the work back */
} work_gate;

/** The place of a work in the stream of an accelerator. */
typedef struct work_stream {
    accelerator_stop
        *stop;    /* the work starts after the stream has reached it; held until the end */
    bool pending; /* the stream may not have reached the stop yet */
    bool late;    /* the work takes its number when the stream reaches the stop */
    uint32_t run; /* of a device program */
} work_stream;

/** The matching of a tagged send or recv, see tagged.h. */
typedef struct work_tagged {
    struct work *next;              /* in its list */
    struct tagged_message *message; /* that a recv has met, or that is a send to this rank itself */
    ring_envelope *envelope;        /* of a recv */
    bool open, met;                 /* its gate is open; its ops may run */
} work_tagged;

/** The end of a work, and the callers that learn of it. */
typedef struct work_result {
    ring_done on_done;
    void *context;
    struct work *next; /* in works.done of its communicator */
    uint32_t handle;   /* its place in the table of handles, 0: it has none */
    int32_t waiters;   /* threads that wait for it */
    bool detached;     /* it has no handle and no waiting thread: only on_done reports its end */
    bool pending;      /* on_done has not been called yet */
    bool orphan;       /* it is under way without a waiting thread */
    bool finished;     /* status is final */
    ring_status status;
} work_result;

typedef struct work {
    ring_comm *comm;
    struct work *next, **link; /* among the works under way, in call order; or in the pool */
    struct work *sibling;      /* among all works of the communicator */
    call_signature call;
    uint64_t signature, seq;
    call_buffers buffers;
    uintptr_t *bases[2]; /* for each block of SRC and DST, the address at which the first block
                            would lie if the blocks were contiguous; NULL: the side is one piece */
    struct list_room *list_room;     /* memory for `bases`; it stays with the work */
    uint64_t src_region, dst_region; /* the lead holds them until the end; 0: none */
    char *scratch, *stage;
    const accelerator *by; /* the accelerator that folds and copies; NULL: the host */
    program *program;
    work_peer *peers; /* [program->peer_count] */
    int32_t peer_cap;
    struct work *lead; /* of its call */
    int32_t parts;     /* of the lead: works of the call that are not complete */
    int32_t index;     /* of its channels */
    work_step step;
    work_wait wait;
    work_gate gate;
    work_stream stream;
    work_tagged tagged;
    struct work *partner; /* of a send or recv to this rank itself: the other one */
    bool lends;           /* links may still read memory of frames that were sent */
    work_result result;
} work;

/** @return the next number of a collective, or of a send or recv with a peer. @param packed  its
 *  signature, for the history. @param on  of a send or recv: its channel; NULL: to itself. */
uint64_t work_take_number(ring_comm *comm, const call_signature *call, uint64_t packed,
                          channel *on);
/** Takes a work from the pool and binds it, with a handle if the options want one; the caller holds
 *  the lock. It is not started. */
ring_status work_new(ring_comm *comm, program *p, const call_buffers *given,
                     const ring_call *options, work **out);
/** Reserves the next message numbers of each channel for this work. A tagged work gets them when it
 *  has met its other end. */
ring_status work_take_messages(work *w);
/** Gates the call's works until the stream has come to @p stop, which is held until their end. */
void work_stop(work *lead, accelerator_stop *stop);
/** A late work takes its call number, in the order in which calls behind its stop were made.
 *  RING_IN_PROGRESS: others come first. */
ring_status work_take_place(work *w);
/** The deadline of a call with these options, in seconds from when it can start. */
double work_timeout(const ring_comm *comm, const ring_call *options);
/** @return true while its event is not set, or its stream has not come to the stop. */
bool work_is_gated(const work *w);
/** The stream has come there, or is not waited for any more. */
void work_pass_stop(work *w);
/** Gives it another program for the same count and type, before an op has run. */
ring_status work_rebind(work *w, program *p);
/** This work is done; the call ends when all its works are. */
void work_part_done(work *w);
/** Takes it off the list of those under way, with its final status. */
void work_finish(work *w, ring_status status);
/** Keeps a finished work for the next call, unless its caller still holds a handle. */
void work_recycle(work *w);
/** @return the accelerator whose memory an operand of @p buffer lies in; NULL: the host. */
static inline const accelerator *work_memory_of(const work *w, uint8_t buffer)
{
    if (w->by == NULL || (buffer != PLAN_SRC && buffer != PLAN_DST))
        return NULL;
    return buffer == PLAN_SRC ? w->buffers.src_by : w->buffers.dst_by;
}
/** @return true if links may use memory of the work in place: it is scratch, or in a region that
 *  the call holds. A region that the call does not hold may end meanwhile. */
bool work_may_lend(const work *w, const char *at);
/** Returns when no accelerator operation of the work is under way. */
void work_settle(work *w);
/** Has it go on in the next turn; for one that cannot start yet, or has used up this turn's limit.
 *  @return RING_IN_PROGRESS. */
ring_status work_hold(work *w);
/** Counts it in or out as an orphan: a work under way without a waiting thread, which threads that
 *  wait for other works move. */
void work_set_orphan(work *w, bool orphan);
/** Frees all works; handles that callers still hold keep the calls' results. */
void works_free(ring_comm *comm);

#endif

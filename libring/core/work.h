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
    bool missing;          /* not all are made                         */
    const char *of;        /* src as it was given                      */
    const uintptr_t *list; /* or where its blocks lie, as work.lists   */
    char *memory;          /* where they lie; NULL: not in memory of the communicator */
    double scale;          /* the factor                               */
    size_t done;           /* elements of the present block            */
    int32_t block;
} work_products;

typedef struct work {
    ring_comm *comm;
    struct work *next, **link; /* among the works under way, in call order; or in the pool */
    struct work *sibling;      /* among all works of the communicator                      */
    call_signature call;
    uint64_t signature, seq;
    const char *src;
    char *dst, *scratch, *stage;
    uintptr_t *lists[2]; /* of SRC and DST, for each block: where the first block would lie if the
                            blocks lay one behind the other; NULL: it is one piece, src or dst */
    struct list_room *list_room; /* for these; it stays with the work */
    work_products products;      /* of the lead */
    size_t src_bytes, dst_bytes;
    uint64_t src_region, dst_region;    /* the lead's, held until the end; 0: of none */
    const accelerator *by;              /* the accelerator that folds and copies, NULL: the host */
    const accelerator *src_by, *dst_by; /* the accelerator whose memory they are, NULL: the host */
    program *program;
    work_peer *peers; /* [program->peer_count] */
    int32_t peer_cap;
    struct work *lead; /* of its call                                       */
    int32_t parts;     /* of the lead: works of the call that are not done  */
    int32_t index;     /* of its channels                                   */
    int32_t op, slice; /* the present one                                   */
    int32_t runs;      /* slices that it has done                           */
    size_t position;   /* elements of the present op that are done          */
    work_phase phase;  /* of the elements that come next                    */
    size_t asked;      /* elements that the accelerator folds, in PHASE_FOLDING */
    bool copies;       /* a recv that fold_run() carries out */
    ticket over;       /* closes when the operation of the phase ends */
    posted relay;      /* the eager message of the present op               */
    int32_t posted;    /* messages that are still to be handed over         */
    channel *awaits;   /* the channel where it waits, NULL: none */
    channel *suspect;  /* the channel where it waited last, for messages */
    wait_kind kind;
    uint64_t number;                /* of the message it waits for                       */
    struct work *behind;            /* next waiter of the channel                        */
    struct work *partner;           /* of a send or recv to this rank itself: the other one */
    struct work *tag_next;          /* tagged: behind it in its list, see tagged.h       */
    struct tagged_message *message; /* tagged: the message that a recv has met, or that a send to
                                       this rank itself is */
    ring_envelope *envelope;        /* of a tagged recv                             */
    bool tag_open, tag_met;         /* tagged: its gate is open; its ops may run */
    ring_event *gate;               /* nothing starts before it is set; NULL: open */
    accelerator_stop *stop;         /* nor before its stream comes there; held until the end */
    bool stopped;                   /* the stream may not have come there yet */
    uint32_t run;                   /* of a device program */
    bool late;                      /* it takes its number when its stream reaches it */
    bool gated;                     /* gate, stop or late may still hold it back */
    double timeout, deadline;       /* deadline 0: the clock was not read yet */
    ring_done on_done;
    void *context;
    struct work *done_next; /* in ring_comm.done */
    uint32_t handle;        /* its place in the table of handles, 0: none        */
    int32_t waiters;        /* threads that wait for it                          */
    bool lends;             /* frames were sent whose memory links may still read */
    bool detached;          /* no handle, no waiting thread: only on_done reports its end */
    bool done_pending;      /* on_done is still to be called */
    bool orphan;            /* under way without a waiting thread */
    bool finished;          /* status is final                                   */
    ring_status status;
} work;

typedef struct call_buffers {
    const void *src;
    void *dst;
    size_t src_bytes, dst_bytes;
    const accelerator *src_by, *dst_by; /* the accelerator whose memory they are, NULL: the host */
    work_products products;             /* scale 1: nothing is to be multiplied; products_place()
                                           sets the rest */
    const void *const *lists[2]; /* of SRC and DST: the addresses of its [ranks] blocks; NULL: it is
                                    one piece, src or dst */
} call_buffers;

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
    return buffer == PLAN_SRC ? w->src_by : w->dst_by;
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

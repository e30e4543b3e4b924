/* SPDX-License-Identifier: Apache-2.0
 *
 * work: a call under way. It holds no state of a thread: whoever holds the communicator's lock may
 * advance it. It goes from the pool to the list of its communicator, through the waiting lists of
 * channels, and back to the pool when it has ended and nobody asks for it any more.
 *
 * A call over several channels a peer is several works, one for each: the first one leads, and ends
 * when all have done their part.
 */
#ifndef RING_CORE_WORK_H
#define RING_CORE_WORK_H

#include "event.h"
#include "program.h"

/** What goes on besides the engine, for the present op. */
typedef enum work_phase {
    PHASE_NONE,
    PHASE_FETCHING, /* a link brings bytes of a message */
    PHASE_FETCHED,
    PHASE_FOLDING /* an accelerator combines */
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
    struct ring_comm *comm;
    struct work *next, **link; /* among the works under way, in call order; or in the pool */
    struct work *sibling;      /* among all works of the communicator                      */
    call_signature call;
    uint64_t signature, seq;
    const char *src;
    char *dst, *scratch, *stage;
    uintptr_t *lists[2]; /* of SRC and DST: where its first byte would lie by each of the blocks, if
                            they lay one behind the other; NULL: it is one piece, src or dst */
    struct list_room *list_room; /* for these; it stays with the work */
    work_products products;      /* of the lead */
    size_t src_bytes, dst_bytes;
    uint64_t src_region, dst_region;    /* the lead's, held until the end; 0: of none */
    const accelerator *by;              /* who computes for it, NULL: the host               */
    const accelerator *src_by, *dst_by; /* whose memory they are, NULL: the host's */
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
    size_t asked;      /* so many, in PHASE_FOLDING                         */
    bool copies;       /* a recv whose message a fold takes                 */
    ticket over;       /* of what was asked for in a phase                  */
    posted relay;      /* the eager message of the present op               */
    int32_t posted;    /* messages that are still to be handed over         */
    channel *awaits;   /* where it waits, NULL: nowhere                     */
    channel *suspect;  /* where it waited last, for messages                */
    wait_kind kind;
    uint64_t number;                /* of the message it waits for                       */
    struct work *behind;            /* next waiter of the channel                        */
    struct work *partner;           /* of a send or recv to this rank itself: the other one */
    struct work *tag_next;          /* tagged: behind it in its list, see tagged.h       */
    struct tagged_message *message; /* tagged: of a recv, what it got; of a send to this rank
                                       itself, what it is                                   */
    ring_envelope *envelope;        /* of a tagged recv                             */
    bool tag_open, tag_met;         /* tagged: its gate is; its ops may run         */
    ring_event *gate;               /* nothing starts before it is set; NULL: open       */
    accelerator_stop *stop;         /* nor before a stream is there; held until the end  */
    bool stopped;                   /* it may not be there yet                           */
    uint32_t run;                   /* of its program, where accelerators run that       */
    bool late;                      /* it takes its place among calls when it is there   */
    bool gated;                     /* one of these three may still hold it back         */
    double timeout, deadline;       /* deadline 0: nobody has looked at the clock yet    */
    ring_done on_done;
    void *context;
    struct work *done_next; /* among those whose on_done is to be called         */
    uint32_t handle;        /* its place in the table of handles, 0: none        */
    int32_t waiters;        /* threads that wait for it                          */
    bool lends;             /* frames were sent that links may still need memory for */
    bool detached;          /* no handle, nobody waits: on_done alone tells      */
    bool telling;           /* on_done is still to be called                     */
    bool orphan;            /* nobody waits for it                               */
    bool finished;          /* status is final                                   */
    ring_status status;
} work;

typedef struct call_buffers {
    const void *src;
    void *dst;
    size_t src_bytes, dst_bytes;
    const accelerator *src_by, *dst_by; /* whose memory they are, NULL: the host's */
    work_products products;             /* scale 1: nothing is to be multiplied; the rest is set by
                                           products_place() */
    const void *const *lists[2]; /* of SRC and DST: where its [ranks] blocks lie; NULL: it is one
                                    piece, src or dst */
} call_buffers;

/** The next number of such a call. @param packed  its signature, to be remembered.
 *  @param on  of a send or recv: its channel; NULL: to itself. */
uint64_t work_take_number(struct ring_comm *comm, const call_signature *call, uint64_t packed,
                          channel *on);
/** Takes a work from the pool and binds it, with a handle if the options want one; the caller holds
 *  the lock. It is not started. */
ring_status work_new(struct ring_comm *comm, program *p, const call_buffers *given,
                     const ring_call *options, work **out);
/** The next message numbers of each channel are this work's. A tagged one gets them when it has met
 *  its other end. */
ring_status work_take_messages(work *w);
/** Nothing of the call starts before a stream has come to @p stop, which is held until its end. */
void work_stop(work *lead, accelerator_stop *stop);
/** A late one takes its place, in the order in which calls behind its stop were made.
 *  RING_IN_PROGRESS: others come first. */
ring_status work_take_place(work *w);
/** The stream has come there, or is not waited for any more. */
void work_pass_stop(work *w);
/** Gives it another program for the same count and type, before an op has run. */
ring_status work_rebind(work *w, program *p);
/** It has done its part: the call ends when all have. */
void work_part_done(work *w);
/** Takes it off the list of those under way, with its final status. */
void work_finish(work *w, ring_status status);
/** Keeps a finished work for the next call, unless its caller still holds a handle. */
void work_recycle(work *w);
/** Whose memory an operand of the buffer is; NULL: the host's. */
static inline const accelerator *work_memory_of(const work *w, uint8_t buffer)
{
    if (w->by == NULL || (buffer != PLAN_SRC && buffer != PLAN_DST))
        return NULL;
    return buffer == PLAN_SRC ? w->src_by : w->dst_by;
}
/** @return true if links may use memory of the work where it lies: it is scratch, or in a region
 *  that the call holds. What only happens to lie in one, that may end meanwhile. */
bool work_may_lend(const work *w, const char *at);
/** Returns when no accelerator works for it any more. */
void work_settle(work *w);
/** Has it go on in the next turn; for one that cannot start yet, or has done enough for this turn.
 *  @return RING_IN_PROGRESS. */
ring_status work_hold(work *w);
/** Counts it, or counts it no more, among the works that nobody waits for: whoever waits elsewhere
 *  may move those. */
void work_set_orphan(work *w, bool orphan);
/** The same for what else has to be looked after though nobody waits: @p change 1 or -1. Any
 *  thread. */
void works_count_orphan(struct ring_comm *comm, int change);
/** The progress thread looks after streams of a communicator of one rank, too, from here on. The
 *  caller holds the lock. */
void works_need_thread(struct ring_comm *comm);
/** @return true if any communicator of the process has works that nobody waits for. */
bool works_have_orphans(void);
/** For forked children. */
void works_forget_orphans(void);
/** Gives the communicator's lock up, and calls the on_done of works that have ended; the progress
 *  thread looks after those that nobody waits for. */
void comm_unlock(struct ring_comm *comm);
/** Frees all works; handles that callers still hold say how the calls ended. */
void works_free(struct ring_comm *comm);

#endif

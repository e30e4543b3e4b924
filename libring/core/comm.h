/* SPDX-License-Identifier: Apache-2.0
 *
 * core's private view: the communicator, its works, and what the files of this room ask of
 * each other.
 *
 * Locking: everything below is guarded by ring_comm.lock, except what is constant after
 * init and the verdict (control.h, atomic). The lock is not held while sleeping, except for the
 * fraction of a second in which a failing call asks control for the culprit.
 */
#ifndef RING_COMM_H
#define RING_COMM_H

#include "algo.h"
#include "control.h"
#include "transport.h"

#include <pthread.h>
#include <stdatomic.h>

/** Shorter messages are carried: their copy is cheaper than an acknowledgement. */
enum { REFERENCE_MIN_BYTES = 2048 };

/** A message on its way out. Entries to one peer leave in order. */
typedef struct work_out {
    int32_t peer;
    uint8_t flags;     /* FRAME_STORED or FRAME_ACK for a notice without payload, else 0 */
    bool by_value;     /* of a message: never by reference                               */
    uint64_t bytes;    /* of a notice: what was stored                                   */
    const char *data;  /* of a message: the chunk (its present slice)                    */
    size_t elements;   /* of the call's type                                             */
    size_t position;   /* elements sent so far                                           */
} work_out;

/** Where a work stands with one peer. */
typedef struct work_peer {
    int32_t sent, received;    /* messages that are complete                             */
    int32_t acks_out, acks_in; /* acknowledgements done with (sent, seen, or not needed) */
    int32_t pending;           /* entries of the out queue                               */
    bool ref_out, ref_in;      /* a message went / came by reference                     */
    uint64_t dst_ref;          /* the peer's dst buffer, 0 until known or not mappable   */
    uint64_t flush_mark;       /* link's frames_sent after this work's latest frame      */
} work_peer;

/** What the ranks must agree on. */
typedef struct call_signature {
    plan_collective collective;
    ring_dtype dtype;
    ring_op op;
    int32_t root;
    size_t count;
} call_signature;

static inline bool call_has_root(const call_signature *call)
{
    return call->collective == PLAN_BROADCAST || call->collective == PLAN_REDUCE;
}

struct ring_work {
    ring_comm *comm;
    ring_work *next;    /* in its lane's queue, in call order; or in the pool */
    ring_work *sibling; /* in the list of all works of the communicator       */
    enum transport_lane lane;
    call_signature call;
    uint64_t seq;
    const void *src;
    void *dst;
    size_t dst_bytes;
    size_t element, acc;    /* bytes */
    size_t segment;         /* elements of a carried segment */
    const plan *plan;
    plan_layout layout;
    plan_cursor cursor;
    size_t slice_elements;  /* of each chunk that one run of the plan covers */
    int32_t slice, slices;  /* present run of the plan, and how many there are */
    size_t position;        /* elements of the current step that are done */
    work_out *queue;        /* messages posted and not yet handed over */
    int32_t queue_first, queue_end, queue_cap;
    work_peer *peers;       /* [ranks] */
    int waits_for;          /* peer of the latest wait, -1 if none; for messages */
    double deadline;
    bool finished;          /* status is final; out of the queue */
    bool idle;              /* in the pool */
    ring_status status;
};

/** Works of a lane that are not finished, in call order. */
typedef struct work_queue {
    ring_work *first;
    ring_work **end; /* where the next one is hung */
} work_queue;

/** What the works of the present turn want of a link, and leave to the works behind them. */
typedef struct link_turn {
    bool wants_recv, wants_send;   /* to sleep on                           */
    bool recvs_taken, sends_taken; /* an earlier work needs this direction  */
} link_turn;

static inline bool link_is_wanted(const link_turn *turn)
{
    return turn->wants_recv || turn->wants_send;
}

typedef struct comm_peer {
    transport_link *lanes[TRANSPORT_LANES]; /* NULL for this rank */
    uint64_t sends, recvs;        /* point-to-point calls so far */
    link_turn turn[TRANSPORT_LANES];
    uint64_t told;                /* seq + 1 of the collective that FRAME_CALL told it, 0: none */
} comm_peer;

/** How long the collectives have not moved. */
typedef struct comm_stall {
    uint64_t moves, moves_seen;
    double since;
} comm_stall;

struct ring_comm {
    int rank, ranks;
    unsigned generation;          /* of the process that made it, see fork_generation() */
    control_world *world;
    settings settings;
    struct tuner *tuner;
    struct plan_cache *plans;
    comm_peer *peers;             /* [ranks] */
    char transport[32];
    pthread_mutex_t lock;
    work_queue queue[TRANSPORT_LANES];
    ring_work *pool, *works;      /* idle ones; all of them */
    size_t turn_bytes;            /* moved in this turn */
    uint64_t turns;
    comm_stall stall;
    uint64_t calls;               /* collectives so far */
    _Atomic int broken;           /* ring_status that ended it */
    char error[1024];             /* written once, before broken */
    struct sleeper *sleeper;
    struct progress_thread *progress;
    /* for ring_comm_get_info */
    const char *algorithm;
    call_signature latest;
    uint64_t bytes_sent, bytes_received, messages_sent;
    double init_seconds;
    int local_rank, local_ranks, hosts;
};

/** A turn moves about so much at most, so that deadlines are seen and other threads get in. */
enum { TURN_BYTES = 16 << 20 };

static inline void comm_count_moved(ring_comm *comm, size_t bytes)
{
    comm->turn_bytes += bytes;
}

static inline bool comm_turn_is_over(const ring_comm *comm)
{
    return comm->turn_bytes >= TURN_BYTES;
}

/* ---- comm.c ---- */
/** @return RING_OK, or an error in a forked child of the process that made it: what the child
 *  holds is a copy without sockets, threads or peers. @param call  for the text. */
ring_status comm_check_own(const ring_comm *comm, const char *call);

/* ---- links.c: which transport joins which pair ---- */
ring_status links_mask(const settings *s, uint32_t *mask);
ring_status links_open(ring_comm *comm);
void links_close(ring_comm *comm);
/** @return true if every pair of ranks has a link that maps memory: the weakest one decides
 *  what plans cost. From the cards alone, so all ranks say the same. */
bool links_all_map(const ring_comm *comm);

/* ---- tuner.c: algorithm and chunks, from what every rank knows ---- */
typedef struct tuner_choice {
    const algo *algorithm;
    int chunks;
} tuner_choice;
ring_status tuner_new(const ring_comm *comm, struct tuner **out);
void tuner_free(struct tuner *t);
ring_status tuner_choose(struct tuner *t, plan_collective collective, size_t bytes,
                         tuner_choice *choice);
/** Seconds that the cost model predicts for a call; 0 if it cannot. */
double tuner_predict(struct tuner *t, const call_signature *call);

/* ---- plans.c: plans built once and kept ---- */
ring_status plans_new(struct plan_cache **out);
void plans_free(struct plan_cache *cache);
/** @return a plan that lives as long as the cache. */
ring_status plans_get(struct plan_cache *cache, const ring_comm *comm,
                      const call_signature *call, const tuner_choice *choice,
                      const plan **out);

/* ---- work.c: the life of a work ---- */
typedef struct call_buffers {
    const void *src;
    void *dst;
    size_t src_bytes, dst_bytes;
} call_buffers;
/** Queues a work; the caller holds the lock. */
ring_status work_start(ring_comm *comm, const call_signature *call, const call_buffers *buffers,
                       double timeout, ring_work **out);
/** Takes the work at @p at, a place in its queue, out of it with its final status. */
void work_finish(ring_work **at, ring_status status);
/** Keeps a finished work for the next call. */
void work_recycle(ring_work *work);
/** Frees the works; one that its caller still holds outlives the communicator, see
 *  work_end_orphan(). */
void work_free_all(ring_comm *comm);
/** Frees a work whose communicator is gone. @return how the call ended. */
ring_status work_end_orphan(ring_work *work);
/** Where a chunk of this rank lies, and how many elements of it the present slice covers. */
void *work_address(const ring_work *work, plan_buffer buffer, int chunk);
size_t work_chunk_count(const ring_work *work, plan_buffer buffer, int chunk);
/** The part of a chunk that the present slice covers. */
plan_span work_span(const ring_work *work, plan_buffer buffer, int chunk);
/** Text of a call for messages: "all_reduce #3 (count 5, float32, sum)". */
void work_describe(const call_signature *call, uint64_t seq, char *out, size_t size);

/* ---- message.c: one frame at a time ---- */
/** @return true while the work has messages or acknowledgements to send to (to receive from)
 *  @p peer: later works must not use that direction of the link. */
bool message_sends_left(const ring_work *work, int peer);
bool message_recvs_left(const ring_work *work, int peer);
/** The frame that comes next from @p peer for this work, checked against its call.
 *  @param total  elements of the message, @p width bytes each.
 *  @param[out] payload  of a reference: the whole message in the peer's memory; else the
 *                       segment at work->position, or NULL while it is not all here.
 *  @return RING_IN_PROGRESS when it is not here, or not this work's turn. */
ring_status message_peek(ring_work *work, int peer, size_t total, size_t width,
                         const transport_frame **frame, const void **payload);
/** Notes that the work waits for more from @p peer. @return RING_IN_PROGRESS. */
ring_status message_await(ring_work *work, int peer);
/** Done with the frame; @p last ends the message. */
void message_consume(ring_work *work, int peer, const transport_frame *frame, bool last);
/** Takes the acknowledgement of @p peer; IN_PROGRESS if it is not here. */
ring_status message_take_ack(ring_work *work, int peer);
/** Room for a carried segment to @p peer; IN_PROGRESS when something is before it. */
ring_status message_reserve(ring_work *work, int peer, void **room);
/** Sends the segment that was reserved: @p elements of @p width bytes at work->position. */
ring_status message_send_reserved(ring_work *work, int peer, void *room, size_t elements,
                                  size_t width, bool last);
/** Posts a chunk, a store notice or an acknowledgement. */
ring_status message_post(ring_work *work, const work_out *entry);
/** Hands over what is posted, as far as links take it. @return true in *moved if any. */
ring_status message_flush(ring_work *work, bool *moved);
/** @return true when nothing of the work is queued or borrowed by a link; asks for progress on
 *  the links that still hold some. */
bool message_all_flushed(ring_work *work);
/** Looks for peers that say they wait in another call, and says so to them. */
ring_status message_compare_calls(ring_work *work);

/* ---- advance.c ---- */
/** Executes steps as far as possible without blocking, or as a turn allows. *moved is set if
 *  anything happened. @return RING_OK when nothing of it is left. */
ring_status work_advance(ring_work *work, bool *moved);
/** A fold, as far as possible (fold.c). */
ring_status fold_step(ring_work *work, const plan_step *step, bool *moved);

/* ---- progress.c ---- */
/** A turn: advances all works once. */
void comm_progress(ring_comm *comm, bool *moved);
/** Fails the communicator if a work is past its deadline, or stalled by a rank in another call.
 *  Turns do it now and then; whoever sleeps or asks rarely does it each time. */
void comm_look_after(ring_comm *comm);

/* ---- wait.c ---- */
ring_status sleeper_new(ring_comm *comm);
void sleeper_free(ring_comm *comm);
/** Ends sleeps of this communicator's threads. Any thread. */
void sleeper_wake(void *comm);
/** The same if there are any; the caller holds the lock. */
void sleeper_stir(ring_comm *comm);
/** Sleeps until a wanted link has news, for a fraction of a second at most. The lock is held on
 *  entry and on return, not in between. */
void comm_sleep(ring_comm *comm, double deadline);
/** Gives up the lock, and the core, for a moment. */
void comm_let_others_in(ring_comm *comm);
/** Waits for one work and recycles it. The caller holds the lock. */
ring_status comm_wait(ring_work *work);

/* ---- thread.c ---- */
/** Starts and stops the thread that advances works while the caller computes. */
ring_status progress_start(ring_comm *comm);
void progress_stop(ring_comm *comm);
/** Tells it that there is work. */
void progress_kick(ring_comm *comm);

/* ---- failure.c ---- */
/** Ends the communicator by @p status and fail_text(), seen in @p work (may be NULL); floods
 *  it. The first failure wins. */
void comm_fail(ring_comm *comm, const ring_work *work, ring_status status);
/** @return RING_OK or what ended the communicator; adopts control's verdict. */
ring_status comm_verdict(ring_comm *comm);

#endif

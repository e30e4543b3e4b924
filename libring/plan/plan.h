/* SPDX-License-Identifier: Apache-2.0
 *
 * plan: the intermediate representation of a collective. A plan is what one rank does: a
 * short ordered list of steps over chunks. It is data; five readers interpret it
 * (executor, checker, cost model, printer, device interpreter) and none knows what a
 * ring is.
 *
 * Messages. A step input or output whose rank is not this rank is one message between
 * the two ranks. The k-th message from a to b in a's plan is the k-th in b's plan: no
 * other tag is needed. A message may carry bytes, or only say "they lie there, read them"
 * (reference), or "I stored them into your buffer" (store); plans are right for all three:
 *  - A sent chunk is not written again (by its owner, or by a peer's store) and the plan
 *    does not end before the receiver has consumed it. Where no later message of the plan
 *    implies that, an ACK / WAIT_ACK pair does; it is run only if a message of this work
 *    between the two ranks went by reference.
 *  - A rank stores into a peer's chunk only after a message from that peer in this plan.
 * The checker proves both.
 *
 * At both ends a message's loc has the other rank, the chunk, and the buffer of the receiver
 * that it is for: PLAN_WIRE if a fold takes it, PLAN_DST if a RECV does. A fold's result is
 * for PLAN_WIRE, in the accumulator's type, until it is finished, and for PLAN_DST once it
 * is. All operands of a step are the same chunk, at most one from and one to each peer.
 *
 * A fold that puts its result into its own PLAN_DST and into peers' may also be run as the
 * fold, then sends by value from the own one; plans are right for this, too.
 *
 * A fold's result for PLAN_WIRE is relayed: it is stored nowhere, so the fold waits for room
 * on the link. Plans proceed on links that take one segment ahead of the receiver; those
 * that relay round a circle of ranks (`circular`) on links that take a chunk and a segment,
 * so the executor runs them slice by slice. The checker proves this, too, also for several
 * slices in a row.
 *
 * Steps run in order. SEND only posts: later steps do not wait for it.
 */
#ifndef RING_PLAN_H
#define RING_PLAN_H

#include "base.h"

typedef enum plan_collective {
    PLAN_ALL_REDUCE,
    PLAN_REDUCE_SCATTER,
    PLAN_ALL_GATHER,
    PLAN_BROADCAST,
    PLAN_REDUCE,
    PLAN_BARRIER, /* an all-reduce of no elements */
    PLAN_SEND,
    PLAN_RECV,
    PLAN_COLLECTIVE_COUNT
} plan_collective;

/** @return "all_reduce", …; "?" if unknown. */
const char *plan_collective_name(plan_collective collective);
/** Bytes factor of the bus bandwidth: busbw = algbw * factor (nccl-tests' definition). */
double plan_bus_factor(plan_collective collective, int ranks);
/** @return true if the collective combines values. */
bool plan_reduces(plan_collective collective);
/** @return blocks of `count` elements in the vector: one a rank (reduce_scatter, all_gather),
 *  else 1. */
int plan_blocks(plan_collective collective, int ranks);

typedef enum plan_buffer {
    PLAN_SRC,
    PLAN_DST,
    PLAN_WIRE /* only in the message: consumed by a fold, stored nowhere */
} plan_buffer;

/** A chunk of a buffer of a rank. */
typedef struct plan_loc {
    int32_t rank;
    int32_t chunk;
    plan_buffer buffer;
} plan_loc;

typedef enum plan_kind {
    PLAN_STEP_SEND,     /* 1 local input  -> 1 remote output; posts and goes on      */
    PLAN_STEP_RECV,     /* 1 remote input -> 1 local output                          */
    PLAN_STEP_COPY,     /* 1 local input  -> 1 local output                          */
    PLAN_STEP_FOLD,     /* >= 1 inputs, combined left to right -> >= 1 outputs       */
    PLAN_STEP_ACK,      /* 1 remote output: "I have read all your references"        */
    PLAN_STEP_WAIT_ACK  /* 1 remote input                                            */
} plan_kind;

/** What the elements of a message are: the call's type, or its accumulator type
 *  (float32 for 16-bit floats, else the type itself). Chunks in buffers always have the
 *  call's type. */
typedef enum plan_wire { PLAN_WIRE_DATA, PLAN_WIRE_ACC } plan_wire;

typedef struct plan_step {
    plan_kind kind;
    plan_wire wire_in;  /* type of remote inputs that are PLAN_WIRE                     */
    plan_wire wire_out; /* type of remote outputs that are PLAN_WIRE                    */
    bool finish;        /* fold: last one, apply RING_AVG's division, round to the type */
    int32_t first_in, ins;   /* into plan.locs */
    int32_t first_out, outs;
} plan_step;

/** Steps [first, first + steps) run @p times times; in round k every chunk index c of theirs
 *  is (c + k * stride) mod plan.chunks. */
typedef struct plan_block {
    int32_t first, steps, times, stride;
} plan_block;

typedef struct plan {
    plan_collective collective;
    const char *algorithm;
    int32_t rank, ranks, root;
    int32_t chunks; /* chunks of the vector (all ranks' blocks together where it has blocks) */
    bool circular;  /* relays round a circle: to be run slice by slice, each chunk's slice small
                       enough for what links take ahead. The same on every rank; set by the
                       algorithm */
    plan_step *steps;
    plan_loc *locs;
    plan_block *blocks;
    int32_t step_count, loc_count, block_count;
    int32_t *sends; /* [ranks] messages to each peer without acknowledgements, set by plan_seal() */
    int32_t *recvs; /* [ranks] messages from each peer, likewise                     */
    int32_t *acks_out, *acks_in; /* [ranks] acknowledgements to / from each peer      */
    int32_t fill;   /* hops of a pipeline over all ranks beyond this rank's own messages;
                       for the cost model, set by pipelined algorithms                */
    int32_t step_cap, loc_cap, block_cap; /* builder's */
    bool failed;                          /* builder's */
} plan;

/* ---- Building (algo/). Builders never fail one by one: the first failed allocation is
 * remembered and plan_seal() reports it. ---- */

/** @return a new empty plan, NULL if out of memory. */
plan *plan_new(plan_collective collective, const char *algorithm, int rank, int ranks,
               int root, int chunks);
void plan_free(plan *p);

/** Opens a block that is repeated (not at all if times < 1); every step belongs to the block
 *  opened last. A plan begins with a block of (1, 0). */
void plan_repeat(plan *p, int times, int stride);
void plan_send(plan *p, plan_buffer from, int chunk, int peer, plan_buffer to);
void plan_recv(plan *p, int peer, plan_buffer to, int chunk);
void plan_copy(plan *p, plan_buffer from, int from_chunk, plan_buffer to, int to_chunk);
/** Starts a fold; then plan_in()/plan_out() for each operand in combining order. */
void plan_fold(plan *p, bool finish, plan_wire wire_in, plan_wire wire_out);
void plan_in(plan *p, int rank, plan_buffer buffer, int chunk);
void plan_out(plan *p, int rank, plan_buffer buffer, int chunk);
void plan_ack(plan *p, int peer);
void plan_wait_ack(plan *p, int peer);
/** Starts a step like @p step, but for its operands; then plan_in()/plan_out(). */
void plan_step_like(plan *p, const plan_step *step);
/** Closes the plan: counts messages. @return RING_OK or RING_ERR_MEMORY. */
ring_status plan_seal(plan *p);

/* ---- Reading. The cursor unrolls the blocks. ---- */

typedef struct plan_cursor {
    const plan *plan;
    int32_t block, round, step;
} plan_cursor;

/** @return the cursor of the first step. */
plan_cursor plan_begin(const plan *p);
/** @return the step under the cursor, NULL at the end. */
const plan_step *plan_at(const plan_cursor *cursor);
void plan_next(plan_cursor *cursor);
/** Operand @p i of the step under the cursor, with its chunk for this round. */
plan_loc plan_input(const plan_cursor *cursor, const plan_step *step, int i);
plan_loc plan_output(const plan_cursor *cursor, const plan_step *step, int i);
/** @return steps after unrolling. */
int64_t plan_length(const plan *p);

/* ---- Layout: chunk -> elements, bound per call, so plans are free of sizes. ----
 * all_reduce, broadcast, reduce: [count] cut into `chunks` parts whose sizes differ by at
 * most one, the longer ones first. reduce_scatter: src is [ranks * count]; chunk c is part
 * c % K of block c / K with K = chunks / ranks; dst has this rank's block alone.
 * all_gather: the other way round. send, recv: one chunk. */

typedef struct plan_layout {
    plan_collective collective;
    int32_t ranks, chunks;
    size_t count; /* the call's count */
} plan_layout;

typedef struct plan_span {
    size_t offset, count; /* elements */
} plan_span;

plan_span plan_span_of(const plan_layout *layout, plan_buffer buffer, int chunk);

/* ---- Checker ---- */

/** Runs the plans of all ranks on sets of contributions and proves: every output chunk
 *  holds each rank exactly once, in the same combining order on all ranks; no step waits
 *  for ever; every message is consumed; no chunk is read or overwritten too early, for
 *  in-place and out-of-place buffers and for messages by value, by reference and by store;
 *  all this also for several slices in a row where plans are circular.
 *  @param plans  [ranks], ranks <= 64. @return RING_OK, or RING_ERR_INTERNAL with the
 *  first offence in fail_text(). */
ring_status plan_check(const plan *const *plans, int ranks);

/** The proven combining order of output @p chunk: rank indices into @p order [ranks].
 *  Only for plans that fold left to right (all of algo/). */
ring_status plan_order(const plan *const *plans, int ranks, int chunk, int32_t *order);

/* ---- Cost model: seconds for one call, from what all ranks know. ---- */

typedef struct plan_cost_params {
    double alpha;      /* seconds a message, with bytes                               */
    double alpha_ref;  /* seconds a message by reference or store                     */
    double beta;       /* seconds a byte moved through a link                         */
    double gamma;      /* seconds a byte read or written by a kernel                  */
    double overhead;   /* seconds a call                                              */
    bool maps;         /* links map memory: messages of size go by reference          */
    size_t reference_min; /* … that is, of this many bytes or more                     */
} plan_cost_params;

/** Price of one rank's plan, taken as the representative of all; reads the plan alone, so
 *  it also prices ranks that are far beyond this machine.
 *  @param element  bytes of an element; @param acc bytes of its accumulator. */
double plan_cost(const plan *p, size_t count, size_t element, size_t acc,
                 const plan_cost_params *params);

/** Payload bytes this rank sends, and messages, by the plan. */
void plan_traffic(const plan *p, size_t count, size_t element, size_t acc,
                  uint64_t *bytes, uint64_t *messages);

/* ---- Printer ---- */

#include <stdio.h>
/** The table G(i,j) after every step: which ranks' gradients each chunk of each rank holds. */
ring_status plan_print_table(const plan *const *plans, int ranks, FILE *out);
/** One rank's steps as text, blocks unrolled. */
void plan_print_steps(const plan *p, FILE *out);
/** Chrome trace (JSON) of all ranks' steps at the cost model's times. */
ring_status plan_print_trace(const plan *const *plans, int ranks, size_t count,
                             size_t element, const plan_cost_params *params, FILE *out);

#endif

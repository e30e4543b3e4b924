/* SPDX-License-Identifier: Apache-2.0
 *
 * plan: the intermediate representation of a collective: the steps of one rank, a short ordered
 * list over chunks. It is data; several readers interpret it (lowering, checker, cost model,
 * printer) and none depends on an algorithm.
 *
 * Messages. A step input or output whose rank is not this rank is one message between the two
 * ranks. The k-th message from a to b in a's plan is the k-th in b's plan: no other tag is needed.
 * A message carries bytes, or a reference to the sender's memory, or a notice that the bytes were
 * stored into the receiver's buffer; plans are right for all three:
 *  - A SEND is borrowed, unless it is eager: its chunks are not written again, by their owner or
 *    by a peer's store, and the plan does not end before the peer has released them. Either a
 *    later WAIT covers the message, or messages that came meanwhile prove that the step that
 *    takes it is over.
 *  - A WAIT is no message. By value it may pass as soon as the bytes have left, so it proves
 *    nothing about the peer's other steps; by reference it passes when the taking step is over.
 *  - A fold's result for a peer's DST may be stored there from the first message of that peer in
 *    this plan on (it brought the reference to the buffer); before it, it is carried.
 *  - A fold's results are never referred to. A result that the fold also puts, equally finished,
 *    into a buffer of its own may be sent by value from there: that buffer is not written before
 *    the message was taken; when the plan has ended, the engine lets the rest leave first.
 *    Any other result that is carried is relayed: it is stored nowhere, so the fold waits for
 *    room on the link.
 * The checker proves that memory is never used too early or too late under any mixture of these.
 *
 * At both ends a message's loc has the other rank, the range of chunks, the type of its elements
 * and the buffer of the receiver that it is for: PLAN_WIRE if a fold takes it, PLAN_DST or
 * PLAN_SCRATCH if a RECV does. All operands of a step have the same range of chunks (only COPY may
 * shift), with at most one message from and one to each peer.
 *
 * Values. SRC and DST hold the call's type; SCRATCH the accumulator's (float32 for 16-bit floats,
 * else the type itself). Outputs of a fold are finished (divided, rounded) exactly if they are for
 * a DST. So unfinished values never reach DST, and finished ones are never folded. Messages from
 * SCRATCH, or relayed for WIRE, have the accumulator's type.
 *
 * Links. Plans make progress on links that take one segment ahead of the receiver, and all that the
 * plan sends eagerly to the peer if that is more; those that relay round a circle of ranks
 * (`circular`) on links that take a chunk and a segment, so the engine runs them slice by slice:
 * part by part of each chunk. Any plan may be run slice by slice: each chunk of a range is a step
 * and a message of its own then, also where a WAIT counts back. The checker proves every plan also
 * for several slices in a row.
 *
 * Steps run in order. SEND only posts: later steps do not wait for it.
 */
#ifndef RING_PLAN_H
#define RING_PLAN_H

#include "base.h"

/* ---- Collectives: all facts by collective --------------------------------------------- */

typedef enum plan_collective {
    PLAN_ALL_REDUCE,
    PLAN_REDUCE_SCATTER,
    PLAN_ALL_GATHER,
    PLAN_BROADCAST,
    PLAN_REDUCE,
    PLAN_GATHER,
    PLAN_SCATTER,
    PLAN_ALL_TO_ALL,
    PLAN_SCAN,
    PLAN_EXSCAN,
    PLAN_BARRIER, /* an all-reduce of no elements */
    PLAN_SEND,
    PLAN_RECV,
    PLAN_ALL_GATHER_V, /* v-forms: planned as the even ones */
    PLAN_REDUCE_SCATTER_V,
    PLAN_ALL_TO_ALL_V,
    PLAN_GATHER_V,
    PLAN_SCATTER_V,
    PLAN_COLLECTIVE_COUNT
} plan_collective;

/** Ranks that have, or must give, a buffer. */
typedef enum plan_side {
    PLAN_NOWHERE,
    PLAN_EVERYWHERE,
    PLAN_ROOT,
    PLAN_BUT_FIRST /* all but rank 0 */
} plan_side;

/** How src and dst may lie if they are not apart. */
typedef enum plan_in_place {
    PLAN_NEVER,
    PLAN_SAME,                /* src == dst                                */
    PLAN_DST_IS_BLOCK_OF_SRC, /* dst is this rank's block of src           */
    PLAN_SRC_IS_BLOCK_OF_DST  /* src is this rank's block of dst           */
} plan_in_place;

/** The content of dst afterwards. */
typedef enum plan_result {
    PLAN_NOTHING,
    PLAN_SUM,    /* all ranks' chunks, combined               */
    PLAN_ROOTS,  /* the root's chunks                         */
    PLAN_OWNERS, /* of each block the src of its rank */
    PLAN_PREFIX  /* chunks of the ranks up to this one, or before it if rank 0 gets nothing,
                    combined left to right in the order of ranks */
} plan_result;

typedef struct plan_facts {
    const char *name;            /* "all_reduce" */
    bool reduces;                /* combines values */
    bool rooted;                 /* has a root */
    bool pairwise;               /* send, recv: `root` is the other rank */
    bool src_blocks, dst_blocks; /* the buffer holds a block of `count` elements a rank, else one */
    bool personalized;           /* each block goes from one rank to one rank */
    bool uneven;                 /* blocks have lengths of their own. If they go to all, or are
                                    reduced, every rank knows all lengths; if personalized, those
                                    that it gives and gets */
    plan_collective even;        /* if uneven: the collective whose plans it uses */
    plan_side src_at, dst_at;
    plan_in_place in_place;
    plan_result result;
    int bus_shares; /* bus factor: so many times (ranks - 1) / ranks; 0: it is 1 */
} plan_facts;

/** @return the collective's row, NULL if unknown. */
const plan_facts *plan_facts_of(plan_collective collective);
/** @return "all_reduce", …; "?" if unknown. */
const char *plan_collective_name(plan_collective collective);
/** @return the collective with that name; PLAN_COLLECTIVE_COUNT if there is none. */
plan_collective plan_collective_find(const char *name);
/** @return the collective whose plans it uses: itself, or the even form. */
plan_collective plan_collective_planned(plan_collective collective);
/** @return true if a rank has, or gives, that side's buffer. */
bool plan_is_on(plan_side side, int rank, int root);
/** @return ranks whose chunks, combined, are @p rank's result: those from 0 on. */
int plan_combined_ranks(plan_collective collective, int rank, int ranks);
/** Bytes factor of the bus bandwidth: busbw = algbw * factor (nccl-tests' definition). */
double plan_bus_factor(plan_collective collective, int ranks);
/** @return blocks of `count` elements in the vector: ranks if a buffer has blocks, ranks * ranks if
 *  both have, else 1. */
int plan_blocks(plan_collective collective, int ranks);

/* ---- World: facts about all ranks that every rank knows ------------------------------- */

typedef struct plan_world {
    int32_t ranks, hosts;
    const int32_t *host_of; /* [ranks] number of the host, hosts numbered by first appearance;
                               NULL: all on one                                               */
    bool rank_order;        /* sums are to be combined in the order of ranks, 0 first */
} plan_world;

static inline int32_t plan_host_of(const plan_world *world, int32_t rank)
{
    return world->host_of != NULL ? world->host_of[rank] : 0;
}

/* ---- Plans ----------------------------------------------------------------------------- */

typedef enum plan_buffer {
    PLAN_SRC,
    PLAN_DST,
    PLAN_WIRE,   /* only in the message: consumed by a fold, stored nowhere */
    PLAN_SCRATCH /* unfinished values of this plan's, in the layout of the vector */
} plan_buffer;

/** The type of a message's elements: the call's, or its accumulator's. */
typedef enum plan_wire { PLAN_WIRE_DATA, PLAN_WIRE_ACC } plan_wire;

/** A range of chunks of a buffer of a rank: it never wraps. */
typedef struct plan_loc {
    int32_t rank;
    int32_t chunk, chunks;
    uint8_t buffer; /* plan_buffer */
    uint8_t wire;   /* plan_wire: of the message, if the loc is one, else PLAN_WIRE_DATA */
    bool finish;    /* output of a fold: divided (AVG) and rounded */
} plan_loc;

typedef enum plan_kind {
    PLAN_STEP_SEND, /* 1 local input  -> 1 remote output; posts and goes on                 */
    PLAN_STEP_RECV, /* 1 remote input -> 1 local output: DST or SCRATCH                     */
    PLAN_STEP_COPY, /* 1 local input: SRC or DST -> DST                                     */
    PLAN_STEP_FOLD, /* >= 1 inputs (SRC, SCRATCH, messages), combined left to right
                       -> >= 1 outputs (DST, SCRATCH, messages)                             */
    PLAN_STEP_WAIT  /* until the peer has released the chunks of all messages sent to it so far,
                       except the last `back` */
} plan_kind;

typedef struct plan_step {
    uint8_t kind;          /* plan_kind */
    bool eager;            /* SEND: copied when posted, so the chunks may be written again at once;
                              the step waits for room on the link */
    int32_t peer, back;    /* WAIT */
    int32_t first_in, ins; /* into plan.locs */
    int32_t first_out, outs;
} plan_step;

/** Steps [first, first + steps) run @p times times; in round k chunk numbers are (c + k * stride)
 *  mod plan.chunks. Steps whose chunks move have operands of single chunks. */
typedef struct plan_block {
    int32_t first, steps, times, stride;
} plan_block;

/** A rank with messages from or to this one, and their numbers. */
typedef struct plan_peer {
    int32_t rank, sends, recvs;
} plan_peer;

typedef struct plan {
    plan_collective collective;
    const char *algorithm;
    int32_t rank, ranks, root;
    int32_t chunks;  /* chunks of the vector (all ranks' blocks together where it has blocks) */
    bool circular;   /* relays round a circle: to be run slice by slice, each chunk's slice small
                        enough for the room of links. The same on every rank; set by the algorithm.
                        Its operands are single chunks */
    bool rank_order; /* the world's */
    int32_t scratch_first, scratch_chunks; /* the range of the vector in SCRATCH; 0: none */
    plan_step *steps;
    plan_loc *locs;
    plan_block *blocks;
    plan_peer *peers; /* sorted by rank */
    int32_t step_count, loc_count, block_count, peer_count;
    /* For the cost model, set by pipelined algorithms: hops of `fill_chunks` chunks (0: one) that a
     * message takes beyond this rank's own; `fill_far` of them between hosts. */
    int32_t fill, fill_far, fill_chunks;
    int32_t step_cap, loc_cap, block_cap; /* builder's */
    int32_t fold_chunk, fold_chunks;      /* builder's: range of the open fold */
    bool failed;                          /* builder's */
} plan;

/* ---- Building (algo/). Builders never fail one by one: the first failed allocation is
 * remembered and plan_seal() reports it. Steps are about chunks [chunk, chunk + chunks). ---- */

/** @return a new empty plan, NULL if out of memory. */
plan *plan_new(plan_collective collective, const char *algorithm, int rank, int ranks, int root,
               int chunks);
void plan_free(plan *p);

/** Opens a block that is repeated (not at all if times < 1); every step belongs to the block
 *  opened last. A plan begins with a block of (1, 0). */
void plan_repeat(plan *p, int times, int stride);
/** A borrowed SEND; @p to is the buffer of the peer. */
void plan_send(plan *p, plan_buffer from, int chunk, int chunks, int peer, plan_buffer to);
void plan_send_eager(plan *p, plan_buffer from, int chunk, int chunks, int peer, plan_buffer to);
void plan_recv(plan *p, int peer, plan_buffer to, int chunk, int chunks);
void plan_copy(plan *p, plan_buffer from, int chunk, plan_buffer to, int to_chunk, int chunks);
void plan_wait(plan *p, int peer, int back);
/** Starts a fold; then its inputs in combining order, then its outputs. */
void plan_fold(plan *p, int chunk, int chunks);
/** @p buffer  PLAN_SRC or PLAN_SCRATCH. */
void plan_fold_local(plan *p, plan_buffer buffer);
/** @p wire  PLAN_WIRE_ACC if the peer sends a sum, PLAN_WIRE_DATA if it sends its SRC. */
void plan_fold_message(plan *p, int peer, plan_wire wire);
/** @p buffer  PLAN_DST (finished) or PLAN_SCRATCH. */
void plan_fold_into(plan *p, plan_buffer buffer);
/** @p buffer  of the peer: PLAN_DST (finished) or PLAN_WIRE. */
void plan_fold_to(plan *p, int peer, plan_buffer buffer);
/** Closes the plan: lists peers, finds the range of SCRATCH.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status plan_seal(plan *p);

/** The general forms of the above: a step with the kind of @p like and no operands yet; then
 *  these. */
void plan_add_step(plan *p, const plan_step *like);
void plan_add_input(plan *p, const plan_loc *loc);
void plan_add_output(plan *p, const plan_loc *loc);

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
/** Operand @p i of the step under the cursor, with this round's chunk. */
plan_loc plan_input(const plan_cursor *cursor, const plan_step *step, int i);
plan_loc plan_output(const plan_cursor *cursor, const plan_step *step, int i);
/** @return true if output @p i is a fold's message without an equally finished local output:
 *  carried by value, it waits for room. */
bool plan_relays(const plan_cursor *cursor, const plan_step *step, int i);
/** @return steps after unrolling. */
int64_t plan_length(const plan *p);
/** @return the counts of messages with a rank, NULL if there are none. */
const plan_peer *plan_peer_of(const plan *p, int rank);

/* ---- Layout: chunk -> elements, bound per call, so plans are free of sizes. ----
 * The vector is one block of `count` elements, or one a rank if one of the buffers has blocks;
 * a buffer without them then has this rank's block alone. If both have (all_to_all), it has a
 * block for each pair: rank s gives rank d block s * ranks + d; src has those of one s, dst those
 * of one d, and ranges of chunks lie in one block. A block is cut into K = chunks / blocks
 * parts whose sizes differ by at most one, the longer ones first; chunk c is part c % K of block
 * c / K. send, recv: one chunk.
 * Where blocks have lengths of their own, a shape has them, and their displacements in the buffers;
 * then a range of chunks lies in one block. */

/** Lengths of blocks, in elements, as far as a rank knows them. */
typedef struct plan_shape {
    int32_t rank;
    size_t own;              /* the block of a buffer with one block */
    const size_t *counts[2]; /* of SRC and DST: [ranks]; NULL: the buffer has one block at most */
    const size_t *displs[2]; /* where they begin: [ranks] */
} plan_shape;

typedef struct plan_layout {
    plan_collective collective; /* an even one */
    int32_t ranks, chunks;
    size_t count;            /* the call's count */
    const plan_shape *shape; /* NULL: all blocks have `count` elements */
} plan_layout;

typedef struct plan_span {
    size_t offset, count; /* elements */
    size_t block;         /* of the buffer, where blocks have lengths of their own; else 0 */
} plan_span;

/** Elements of chunks [chunk, chunk + chunks) in a buffer; in the vector for SCRATCH, whose
 *  first element is that of chunk plan.scratch_first, and WIRE. With a shape: in buffers of this
 *  rank; of other buffers only the count is valid. */
plan_span plan_span_of(const plan_layout *layout, plan_buffer buffer, int chunk, int chunks);

/* ---- Checker ---- */

/** Runs the plans of all ranks on symbols and proves: every output chunk holds each rank exactly
 *  once, in the same combining order on all ranks, or the ranks of its prefix, in the order of
 *  ranks; no step waits for ever; every message is consumed; no chunk is read or overwritten too
 * early, for in-place and out-of-place buffers and for messages by value, by reference and by
 * store; all this for one run and for several slices in a row.
 *  @param plans  [ranks], ranks <= 64. @return RING_OK, or RING_ERR_INTERNAL with the
 *  first offence in fail_text(). */
ring_status plan_check(const plan *const *plans, int ranks);

/** The combining order of output @p chunk, in postfix: a rank pushes its contribution, -1 combines
 *  the two topmost (left op right). @param[out] order  [2 * ranks - 1]. */
ring_status plan_order(const plan *const *plans, int ranks, int chunk, int32_t *order);

/* ---- Cost model: seconds for one call, from what all ranks know. ---- */

/** Of a class of pairs of ranks. */
typedef struct plan_cost_params {
    double alpha;         /* seconds a message, with bytes                                */
    double alpha_ref;     /* seconds a message by reference or store                      */
    double beta;          /* seconds a byte moved through a link                          */
    double gamma;         /* seconds a byte read or written by a kernel                   */
    double overhead;      /* seconds a call                                               */
    bool maps;            /* links map memory: messages of size go by reference           */
    size_t reference_min; /* … those of this many bytes or more */
    size_t eager_max;     /* most bytes that a call sends a peer eagerly; 0: no limit     */
} plan_cost_params;

/** Kernels and calls are priced as on the weaker class that the world has. */
typedef struct plan_prices {
    plan_cost_params same_host, other_host;
} plan_prices;

/** Price of one rank's plan, taken as the representative of all; reads the plan alone, so
 *  it also prices ranks that are far beyond this machine. algo_price() walks several.
 *  @param element  bytes of an element; @param acc bytes of its accumulator.
 *  @param[out] seconds  HUGE_VAL if it sends more than eager_max to a peer.
 *  @return RING_OK or RING_ERR_MEMORY: all ranks must have the same price, or none. */
ring_status plan_cost(const plan *p, const plan_world *world, size_t count, size_t element,
                      size_t acc, const plan_prices *prices, double *seconds);

/** Payload bytes this rank sends, and messages, by the plan. */
void plan_traffic(const plan *p, size_t count, size_t element, size_t acc, uint64_t *bytes,
                  uint64_t *messages);

/** Payload bytes that this rank sends to ranks of other hosts, and takes from them. */
void plan_far_traffic(const plan *p, const plan_world *world, size_t count, size_t element,
                      size_t acc, uint64_t *out, uint64_t *in);

/** @param[out] bytes  the most that one peer is sent eagerly. @return RING_OK or
 *  RING_ERR_MEMORY. */
ring_status plan_eager_bytes(const plan *p, size_t count, size_t element, size_t acc,
                             size_t *bytes);

/* ---- Printer ---- */

#include <stdio.h>
/** The table G(i,j) after every step: the ranks whose gradients each chunk of each rank holds. */
ring_status plan_print_table(const plan *const *plans, int ranks, FILE *out);
/** One rank's steps as text, blocks unrolled. */
void plan_print_steps(const plan *p, FILE *out);
/** Chrome trace (JSON) of all ranks' steps at the cost model's times. */
ring_status plan_print_trace(const plan *const *plans, const plan_world *world, size_t count,
                             size_t element, const plan_prices *prices, FILE *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * plan: defines the intermediate representation of a collective: the steps of one rank, as a short
 * ordered list over chunks. A plan is data. Several readers interpret it (lowering, checker, cost
 * model, printer), and none of them depends on an algorithm.
 *
 * Messages: a step's input or output at another rank is one message between the two ranks. The k-th
 * message from a to b in a's plan is the k-th in b's plan, so messages need no tags. A message
 * carries bytes, or a reference to the sender's memory, or a notice that the bytes were stored into
 * the receiver's buffer. A plan is correct for all three:
 *  - A SEND that is not eager lends its chunks to the peer; the message is "borrowed". Until the
 *    peer has released the chunks, no rank overwrites them, and the plan does not end. The release
 *    follows from a later WAIT that covers the message, or from other messages of the peer, which
 *    prove that the step that takes the message has ended.
 *  - A WAIT is not a message. If the messages that it covers are carried by value, it may pass as
 *    soon as their bytes have left, so it proves nothing about the peer's other steps. If they are
 *    references, it passes when the steps that take them have ended.
 *  - A fold's result for a peer's DST may be stored there after the first message of that peer in
 *    this plan, because that message brings the reference to the buffer. Before that, the result is
 *    carried by value.
 *  - A fold's result is never sent by reference. If the fold also writes the same value (both are
 *    finished, or both are not) to a local buffer, the message may be carried from that buffer. The
 *    buffer is then not overwritten before the message is taken, and the engine waits at the end of
 *    the plan until all such messages have left. Any other carried result is relayed: it is stored
 *    nowhere, so the fold waits for room on the link.
 * The checker proves that memory is never used too early or too late under any mixture of these.
 *
 * At both ends, the loc of a message has the other rank, the range of chunks, the type of its
 * elements, and the receiver's buffer: PLAN_WIRE if a fold takes it, PLAN_DST or PLAN_SCRATCH if a
 * RECV does. All operands of a step have the same range of chunks (only COPY may shift it), and a
 * step has at most one message from and one to each peer.
 *
 * Values: SRC and DST have the call's type; SCRATCH has the accumulator's (float32 for 16-bit
 * floats, and the call's type otherwise). An output of a fold is finished (divided and rounded) if
 * and only if it is for a DST. So unfinished values never reach DST, and finished values are never
 * folded. Messages from SCRATCH, or relayed for WIRE, have the accumulator's type.
 *
 * Links: a plan needs links that hold one segment ahead of the receiver, or all of its eager
 * messages to the peer if these are more. Plans that relay round a circle of ranks (`circular`)
 * need links that hold a chunk and a segment, so the engine runs them slice by slice: a part of
 * each chunk at a time. Any plan may be run slice by slice. Then a step over several chunks becomes
 * one step and one message for each chunk, and a WAIT counts these messages. The checker proves
 * every plan for several slices in a row too.
 *
 * Steps run in order. A SEND that is not eager only posts its message, and later steps do not wait
 * for it.
 */
#ifndef RING_PLAN_H
#define RING_PLAN_H

#include "base.h"

/* ---- Collectives ---------------------------------------------------------------------- */

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
    PLAN_ALL_GATHER_V, /* v-forms use the plans of the forms with even blocks */
    PLAN_REDUCE_SCATTER_V,
    PLAN_ALL_TO_ALL_V,
    PLAN_GATHER_V,
    PLAN_SCATTER_V,
    PLAN_COLLECTIVE_COUNT
} plan_collective;

/** The ranks that have a buffer. */
typedef enum plan_side {
    PLAN_NOWHERE,
    PLAN_EVERYWHERE,
    PLAN_ROOT,
    PLAN_BUT_FIRST /* all but rank 0 */
} plan_side;

/** How src and dst may overlap. */
typedef enum plan_in_place {
    PLAN_NEVER,
    PLAN_SAME,                /* src == dst                                */
    PLAN_DST_IS_BLOCK_OF_SRC, /* dst is this rank's block of src           */
    PLAN_SRC_IS_BLOCK_OF_DST  /* src is this rank's block of dst           */
} plan_in_place;

/** The contents of dst after the collective. */
typedef enum plan_result {
    PLAN_NOTHING,
    PLAN_SUM,    /* all ranks' chunks, combined                                              */
    PLAN_ROOTS,  /* the root's chunks                                                        */
    PLAN_OWNERS, /* in each block, the src of the block's rank                               */
    PLAN_PREFIX  /* the chunks of the ranks up to this one (or, if rank 0 has no dst, before
                    it), combined from left to right in the order of ranks                   */
} plan_result;

typedef struct plan_facts {
    const char *name;            /* "all_reduce" */
    bool reduces;                /* combines values */
    bool rooted;                 /* has a root */
    bool pairwise;               /* send, recv: `root` is the other rank */
    bool src_blocks, dst_blocks; /* the buffer has a block of `count` elements for each rank;
                                    false: a single block                                       */
    bool personalized;           /* each block is sent from one rank to one rank                */
    bool uneven;                 /* blocks have different lengths. Every rank knows all of them;
                                    if personalized, only those that it sends and receives      */
    plan_collective even;        /* if uneven: the collective whose plans it uses               */
    plan_side src_at, dst_at;
    plan_in_place in_place;
    plan_result result;
    int bus_shares; /* the bus factor is bus_shares * (ranks - 1) / ranks; 0: the factor is 1 */
} plan_facts;

/** @return the collective's row; NULL if it is unknown. */
const plan_facts *plan_facts_of(plan_collective collective);
/** @return "all_reduce", …; "?" if the collective is unknown. */
const char *plan_collective_name(plan_collective collective);
/** @return the collective with that name; PLAN_COLLECTIVE_COUNT if there is none. */
plan_collective plan_collective_find(const char *name);
/** @return the collective whose plans @p collective uses: itself, or the even form of a v-form. */
plan_collective plan_collective_planned(plan_collective collective);
/** @return true if a rank has the buffer (src or dst) that the ranks of @p side have. */
bool plan_is_on(plan_side side, int rank, int root);
/** @return the number of ranks, from 0 on, whose combined chunks are @p rank's result. */
int plan_combined_ranks(plan_collective collective, int rank, int ranks);
/** @return the factor of the bus bandwidth: busbw = algbw * factor (nccl-tests' definition). */
double plan_bus_factor(plan_collective collective, int ranks);
/** @return the blocks of `count` elements in the vector: ranks if one buffer has blocks, ranks *
 *  ranks if both do, or else 1. */
int plan_blocks(plan_collective collective, int ranks);

/* ---- World: facts about all ranks that every rank knows ------------------------------- */

typedef struct plan_world {
    int32_t ranks, hosts;
    const int32_t *host_of; /* [ranks] the number of each rank's host. Hosts are numbered by first
                               appearance. NULL: all ranks are on one host                   */
    bool rank_order;        /* sums must be combined in the order of ranks, from 0           */
} plan_world;

static inline int32_t plan_host_of(const plan_world *world, int32_t rank)
{
    return world->host_of != NULL ? world->host_of[rank] : 0;
}

/* ---- Plans ----------------------------------------------------------------------------- */

typedef enum plan_buffer {
    PLAN_SRC,
    PLAN_DST,
    PLAN_WIRE,   /* the message itself: a fold consumes it, and it is stored nowhere */
    PLAN_SCRATCH /* unfinished values of this plan, in the layout of the vector      */
} plan_buffer;

/** The type of a message's elements: the call's, or its accumulator's. */
typedef enum plan_wire { PLAN_WIRE_DATA, PLAN_WIRE_ACC } plan_wire;

/** A range of chunks in a buffer of a rank. It never wraps. */
typedef struct plan_loc {
    int32_t rank;
    int32_t chunk, chunks;
    uint8_t buffer; /* plan_buffer */
    uint8_t wire;   /* plan_wire of a message; PLAN_WIRE_DATA for local operands */
    bool finish;    /* output of a fold: divided (AVG) and rounded               */
} plan_loc;

typedef enum plan_kind {
    PLAN_STEP_SEND, /* 1 local input  -> 1 remote output                                    */
    PLAN_STEP_RECV, /* 1 remote input -> 1 local output: DST or SCRATCH                     */
    PLAN_STEP_COPY, /* 1 local input: SRC or DST -> DST                                     */
    PLAN_STEP_FOLD, /* >= 1 inputs (SRC, SCRATCH, messages), combined left to right
                       -> >= 1 outputs (DST, SCRATCH, messages)                             */
    PLAN_STEP_WAIT  /* waits until the peer has released the chunks of all messages sent to it
                       so far, except the last `back`                                       */
} plan_kind;

typedef struct plan_step {
    uint8_t kind;          /* plan_kind */
    bool eager;            /* SEND: copied when posted, so the chunks may be written again
                              immediately; the step waits for room on the link */
    int32_t peer, back;    /* WAIT */
    int32_t first_in, ins; /* into plan.locs */
    int32_t first_out, outs;
} plan_step;

/** Steps [first, first + steps), which run @p times times. In round k, chunk c stands for chunk
 *  (c + k * stride) mod plan.chunks. If a repeated block has a stride, its operands are single
 *  chunks. */
typedef struct plan_block {
    int32_t first, steps, times, stride;
} plan_block;

/** A rank that exchanges messages with this rank, and the numbers of messages to and from it. */
typedef struct plan_peer {
    int32_t rank, sends, recvs;
} plan_peer;

typedef struct plan {
    plan_collective collective;
    const char *algorithm;
    int32_t rank, ranks, root;
    int32_t chunks;  /* chunks of the vector (all ranks' blocks together where it has blocks) */
    bool circular;   /* relays round a circle, so it must be run slice by slice, and a slice of a
                        chunk must fit into a link. The algorithm sets it to the same value on
                        every rank. All operands are single chunks                              */
    bool rank_order; /* copied from plan_world                                                  */
    int32_t scratch_first, scratch_chunks; /* the range of the vector in SCRATCH; may be empty  */
    plan_step *steps;
    plan_loc *locs;
    plan_block *blocks;
    plan_peer *peers; /* sorted by rank */
    int32_t step_count, loc_count, block_count, peer_count;
    /* For the cost model, set by pipelined algorithms: the time to fill the pipeline is that of
     * `fill` hops of `fill_chunks` chunks each (0 means 1), beyond this rank's own messages;
     * `fill_far` of these hops are between hosts. */
    int32_t fill, fill_far, fill_chunks;
    /* For the builder: */
    int32_t step_cap, loc_cap, block_cap;
    int32_t fold_chunk, fold_chunks; /* the range of the open fold */
    bool failed;
} plan;

/* ---- Building (algo/). These functions do not return errors: the first failed allocation is
 * recorded, and plan_seal() reports it. Steps are for chunks [chunk, chunk + chunks). ---- */

/** @return a new empty plan, NULL if out of memory. */
plan *plan_new(plan_collective collective, const char *algorithm, int rank, int ranks, int root,
               int chunks);
void plan_free(plan *p);

/** Opens a block that runs @p times times (not at all if times < 1), with @p stride as in
 *  plan_block. Every step belongs to the block opened last. A plan begins with a block of times 1
 *  and stride 0. */
void plan_repeat(plan *p, int times, int stride);
/** Appends a SEND that is not eager; @p to is the buffer of the peer. */
void plan_send(plan *p, plan_buffer from, int chunk, int chunks, int peer, plan_buffer to);
void plan_send_eager(plan *p, plan_buffer from, int chunk, int chunks, int peer, plan_buffer to);
void plan_recv(plan *p, int peer, plan_buffer to, int chunk, int chunks);
void plan_copy(plan *p, plan_buffer from, int chunk, plan_buffer to, int to_chunk, int chunks);
void plan_wait(plan *p, int peer, int back);
/** Starts a fold. The next calls append its inputs in combining order, and then its outputs. */
void plan_fold(plan *p, int chunk, int chunks);
/** @p buffer  PLAN_SRC or PLAN_SCRATCH. */
void plan_fold_local(plan *p, plan_buffer buffer);
/** @p wire  PLAN_WIRE_ACC if the peer sends a sum, PLAN_WIRE_DATA if it sends its SRC. */
void plan_fold_message(plan *p, int peer, plan_wire wire);
/** @p buffer  PLAN_DST (finished) or PLAN_SCRATCH. */
void plan_fold_into(plan *p, plan_buffer buffer);
/** @p buffer  the peer's: PLAN_DST (finished) or PLAN_WIRE. */
void plan_fold_to(plan *p, int peer, plan_buffer buffer);
/** Completes the plan: lists its peers, and finds the range of SCRATCH.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status plan_seal(plan *p);

/** The general forms of the above: append a step like @p like without operands, and then each
 *  operand. */
void plan_add_step(plan *p, const plan_step *like);
void plan_add_input(plan *p, const plan_loc *loc);
void plan_add_output(plan *p, const plan_loc *loc);

/* ---- Reading: a cursor unrolls the blocks ---- */

typedef struct plan_cursor {
    const plan *plan;
    int32_t block, round, step;
} plan_cursor;

/** @return the cursor of the first step. */
plan_cursor plan_begin(const plan *p);
/** @return the step under the cursor; NULL at the end. */
const plan_step *plan_at(const plan_cursor *cursor);
void plan_next(plan_cursor *cursor);
/** @return operand @p i of the step under the cursor, with the chunk of the current round. */
plan_loc plan_input(const plan_cursor *cursor, const plan_step *step, int i);
plan_loc plan_output(const plan_cursor *cursor, const plan_step *step, int i);
/** @return true if output @p i is a message of a fold, and no local output of the fold has the same
 *  value (both finished, or both not). If such a message is carried, the fold waits for room. */
bool plan_relays(const plan_cursor *cursor, const plan_step *step, int i);
/** @return the number of steps after unrolling. */
int64_t plan_length(const plan *p);
/** @return the numbers of messages with a rank; NULL if there are none. */
const plan_peer *plan_peer_of(const plan *p, int rank);

/* ---- Layout: maps chunks to elements for one call, so that plans do not depend on sizes ----
 * The vector is one block of `count` elements, or a block for each rank if src or dst has blocks;
 * the buffer without blocks then has only this rank's block. If both buffers have blocks
 * (all_to_all), the vector has a block for each pair: rank s sends block s * ranks + d to rank d,
 * src has the blocks of one s, dst those of one d, and a range of chunks is within one block.
 * A block is cut into K = chunks / blocks parts whose sizes differ by at most one, the longer ones
 * first; chunk c is part c % K of block c / K. send and recv have one chunk.
 * If blocks have different lengths, a shape has the lengths and the displacements in the buffers,
 * and a range of chunks is within one block. */

/** The lengths of blocks, in elements, that one rank knows. */
typedef struct plan_shape {
    int32_t rank;
    size_t own;              /* length of the block in a buffer with one block               */
    const size_t *counts[2]; /* [ranks] of SRC and DST; NULL: the buffer has at most one block */
    const size_t *displs[2]; /* [ranks] the beginnings of the blocks                          */
} plan_shape;

typedef struct plan_layout {
    plan_collective collective; /* with even blocks */
    int32_t ranks, chunks;
    size_t count;            /* of the call */
    const plan_shape *shape; /* NULL: all blocks have `count` elements */
} plan_layout;

typedef struct plan_span {
    size_t offset, count; /* elements */
    size_t block;         /* of the buffer, if blocks have different lengths; else 0 */
} plan_span;

/** @return the elements of chunks [chunk, chunk + chunks) in a buffer. For WIRE and SCRATCH the
 *  offset counts from the beginning of the vector, although SCRATCH begins with chunk
 *  plan.scratch_first. With a shape, the offset is valid only for buffers of this rank; the count
 *  is always valid. */
plan_span plan_span_of(const plan_layout *layout, plan_buffer buffer, int chunk, int chunks);

/* ---- Checker ---- */

/** Runs the plans of all ranks on symbols and proves that every output chunk contains each rank
 *  exactly once, combined in the same order on all ranks (for a prefix: the ranks of the prefix, in
 *  the order of ranks); that no step waits for ever; that every message is consumed; and that no
 *  chunk is read or overwritten too early. It proves this for buffers in place and out of place,
 *  for messages by value, by reference and by store, and for one run and several slices in a row.
 *  @param plans  [ranks], ranks <= 64.
 *  @return RING_OK, or RING_ERR_INTERNAL with the first offence in fail_text(). */
ring_status plan_check(const plan *const *plans, int ranks);

/** Finds the combining order of output @p chunk in postfix notation: a rank number pushes that
 *  rank's contribution on a stack, and -1 combines the two topmost entries (left op right).
 *  @param[out] order  [2 * ranks - 1]. */
ring_status plan_order(const plan *const *plans, int ranks, int chunk, int32_t *order);

/* ---- Cost model: computes the seconds of a call from facts that all ranks know ---- */

/** The prices of a class of pairs of ranks. */
typedef struct plan_cost_params {
    double alpha;         /* seconds per message with bytes                             */
    double alpha_ref;     /* seconds per message by reference or store                  */
    double beta;          /* seconds per byte moved through a link                      */
    double gamma;         /* seconds per byte read or written by a kernel               */
    double overhead;      /* seconds per call                                           */
    bool maps;            /* links map memory, so large messages are sent by reference  */
    size_t reference_min; /* bytes of the smallest message that is sent by reference    */
    size_t eager_max;     /* most bytes that a call may send a peer eagerly; 0: no limit */
} plan_cost_params;

/** The prices of both classes. Kernels and calls have the prices of the weaker class that occurs in
 *  the world. */
typedef struct plan_prices {
    plan_cost_params same_host, other_host;
} plan_prices;

/** Prices one rank's plan as if all ranks had plans of the same times. It reads only this plan, so
 *  it can price far more ranks than this machine could run. algo_price() prices several ranks.
 *  @param element  bytes of an element. @param acc  bytes of its accumulator.
 *  @param[out] seconds  HUGE_VAL if the plan sends a peer more than eager_max.
 *  @return RING_OK or RING_ERR_MEMORY. After an error the caller must not choose an algorithm by
 *  prices, because other ranks, which have all prices, might choose another one. */
ring_status plan_cost(const plan *p, const plan_world *world, size_t count, size_t element,
                      size_t acc, const plan_prices *prices, double *seconds);

/** Counts the payload bytes and the messages that this rank sends. */
void plan_traffic(const plan *p, size_t count, size_t element, size_t acc, uint64_t *bytes,
                  uint64_t *messages);

/** Counts the payload bytes that this rank sends to ranks of other hosts and receives from them. */
void plan_far_traffic(const plan *p, const plan_world *world, size_t count, size_t element,
                      size_t acc, uint64_t *out, uint64_t *in);

/** @param[out] bytes  the largest number of bytes that this rank sends to one peer eagerly.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status plan_eager_bytes(const plan *p, size_t count, size_t element, size_t acc,
                             size_t *bytes);

/* ---- Printer ---- */

#include <stdio.h>
/** Prints the table G(i,j) after every step: the ranks whose gradients each chunk of each rank
 *  contains. */
ring_status plan_print_table(const plan *const *plans, int ranks, FILE *out);
/** Prints one rank's steps as text, with unrolled blocks. */
void plan_print_steps(const plan *p, FILE *out);
/** Writes a Chrome trace (JSON) of all ranks' steps at the cost model's times. */
ring_status plan_print_trace(const plan *const *plans, const plan_world *world, size_t count,
                             size_t element, const plan_prices *prices, FILE *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * One case: the call between guarded buffers, and everything that can be wrong with it. Every
 * rank checks every element of its outputs, guard bytes around buffers, that inputs are
 * unchanged out of place, and that the call went the way that the sweep is about.
 */
#include "sweep_order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool sweep_reduces(sweep_kind kind)
{
    return kind == SWEEP_ALL_REDUCE || kind == SWEEP_REDUCE_SCATTER || kind == SWEEP_REDUCE ||
           sweep_is_prefix(kind);
}

bool sweep_is_prefix(sweep_kind kind)
{
    return kind == SWEEP_SCAN || kind == SWEEP_EXSCAN;
}

bool sweep_has_root(sweep_kind kind)
{
    return kind == SWEEP_BROADCAST || kind == SWEEP_REDUCE || kind == SWEEP_GATHER ||
           kind == SWEEP_SCATTER;
}

bool sweep_has_blocks(sweep_kind kind)
{
    return kind == SWEEP_REDUCE_SCATTER || kind == SWEEP_ALL_GATHER || kind == SWEEP_GATHER ||
           kind == SWEEP_SCATTER || kind == SWEEP_ALL_TO_ALL;
}

/* A block of one buffer is this rank's vector in the other one. */
static bool gathers(sweep_kind kind)
{
    return kind == SWEEP_ALL_GATHER || kind == SWEEP_GATHER;
}

static bool scatters(sweep_kind kind)
{
    return kind == SWEEP_REDUCE_SCATTER || kind == SWEEP_SCATTER;
}

/* ---- A rank's part --------------------------------------------------------------------- */

/* Elements [first, first + count) of all ranks' vector. */
typedef struct range {
    size_t first, count;
} range;

typedef struct trial {
    const sweep_case *c;
    int rank;
    oracle_case oracle;
    range in, out;             /* no output: count 0 */
    guarded src, dst;          /* one and the same in place */
    guarded factor;            /* of this rank, which the GPU reads; no bytes: the host does */
    size_t src_skip, dst_skip; /* bytes into them */
} trial;

static void set_ranges(trial *t)
{
    const size_t count = t->c->count;
    const range whole = {0, t->oracle.total}, block = {(size_t)t->rank * count, count};
    t->in = gathers(t->c->kind) ? block : whole;
    t->out = scatters(t->c->kind) ? block : whole;
}

static bool multiplies(const sweep_case *c)
{
    return sweep_reduces(c->kind) && c->op == RING_PREMUL_SUM;
}

static oracle_case oracle_of(const sweep_case *c)
{
    return (oracle_case){
        .dtype = c->dtype,
        .op = c->op,
        .ranks = c->ranks,
        .data = c->data,
        .seed = c->seed,
        .total = c->count * (sweep_has_blocks(c->kind) ? (size_t)c->ranks : 1),
        .block_count = c->kind == SWEEP_REDUCE_SCATTER ? c->count : 0,
    };
}

/* In place one buffer holds both: the larger of the two vectors, the other one in its block. */
static trial prepare(const sweep_case *c, sweep_memory memory, int rank)
{
    trial t = {.c = c, .rank = rank, .oracle = oracle_of(c)};
    const size_t size = ring_dtype_size(c->dtype);
    set_ranges(&t);
    const size_t larger = t.in.count > t.out.count ? t.in.count : t.out.count;
    t.src = guarded_new((c->in_place ? larger : t.in.count) * size, c->shared, memory);
    t.dst = c->in_place ? t.src : guarded_new(t.out.count * size, c->shared, memory);
    const bool reads = memory == SWEEP_CUDA && !c->shared && multiplies(c) && c->seed % 2 != 0;
    t.factor = guarded_new(reads ? sizeof(double) : 0, false, reads ? memory : SWEEP_PLAIN);
    if (reads) {
        *(double *)(void *)t.factor.view = oracle_factor(&t.oracle, rank);
        guarded_push(&t.factor);
    }
    if (c->in_place && gathers(c->kind))
        t.src_skip = t.in.first * size;
    if (c->in_place && scatters(c->kind))
        t.dst_skip = t.out.first * size;
    oracle_fill(&t.oracle, rank, t.src.view + t.src_skip, t.in.first, t.in.count);
    guarded_push(&t.src);
    guarded_push(&t.dst);
    if ((c->kind == SWEEP_REDUCE || c->kind == SWEEP_GATHER) && rank != c->root)
        t.out.count = 0;
    if (c->kind == SWEEP_EXSCAN && rank == 0)
        t.out.count = 0;
    return t;
}

static void discard(trial *t)
{
    if (!t->c->in_place)
        guarded_free(&t->dst);
    guarded_free(&t->src);
    guarded_free(&t->factor);
}

static ring_status call_it(const trial *t, ring_comm *comm, void *stream)
{
    const sweep_case *c = t->c;
    const double factor = oracle_factor(&t->oracle, t->rank);
    ring_call call = RING_CALL_INIT;
    call.stream = stream;
    call.scale = !multiplies(c)        ? NULL
                 : t->factor.bytes > 0 ? (const double *)(const void *)t->factor.at
                                       : &factor;
    const void *src = t->src.at + t->src_skip;
    void *dst = t->dst.at + t->dst_skip;
    switch (c->kind) {
    case SWEEP_ALL_REDUCE:
        return ring_all_reduce(src, dst, c->count, c->dtype, c->op, comm, &call);
    case SWEEP_REDUCE_SCATTER:
        return ring_reduce_scatter(src, dst, c->count, c->dtype, c->op, comm, &call);
    case SWEEP_ALL_GATHER:
        return ring_all_gather(src, dst, c->count, c->dtype, comm, &call);
    case SWEEP_BROADCAST:
        return ring_broadcast(src, dst, c->count, c->dtype, c->root, comm, &call);
    case SWEEP_GATHER:
        return ring_gather(src, dst, c->count, c->dtype, c->root, comm, &call);
    case SWEEP_SCATTER:
        return ring_scatter(src, dst, c->count, c->dtype, c->root, comm, &call);
    case SWEEP_ALL_TO_ALL:
        return ring_all_to_all(src, dst, c->count, c->dtype, comm, &call);
    case SWEEP_SCAN:
        return ring_scan(src, dst, c->count, c->dtype, c->op, comm, &call);
    case SWEEP_EXSCAN:
        return ring_exscan(src, t->out.count > 0 ? dst : NULL, c->count, c->dtype, c->op, comm,
                           &call);
    default:
        return ring_reduce(src, dst, c->count, c->dtype, c->op, c->root, comm, &call);
    }
}

/* ---- Judging --------------------------------------------------------------------------- */

/* A rank alone has no transport; others that of their host, the wire or both: in either order. */
static bool went_over(const sweep_case *c, const sweep_target *target, int rank, const char *used)
{
    const bool near = rank >= target->hosts || rank + target->hosts < c->ranks;
    const bool far = target->hosts > 1 && c->ranks > 1 &&
                     strcmp(target->transport, target->wire) != 0;
    size_t length = 0;
    if (c->ranks == 1)
        return strcmp(used, "self") == 0;
    if ((near || !far) && strstr(used, target->transport) == NULL)
        return false;
    if (far && strstr(used, target->wire) == NULL)
        return false;
    length += near || !far ? strlen(target->transport) : 0;
    length += far ? strlen(target->wire) : 0;
    return strlen(used) == length + (near && far);
}

/* Calls outside the algorithm's range may use another one. */
static bool went_the_way(const sweep_case *c, const sweep_target *target, int rank,
                         const ring_comm_info *info)
{
    if (!went_over(c, target, rank, info->transport))
        return false;
    if (target->algorithm[0] == '\0')
        return true;
    const bool by_another = !sweep_order_serves(target->algorithm, c->kind);
    return (strcmp(info->algorithm, target->algorithm) == 0) != by_another;
}

/* Collectives that only move: every block is its owner's input. */
static bool moved_right(const trial *t)
{
    const sweep_case *c = t->c;
    const size_t size = ring_dtype_size(c->dtype);
    const unsigned char *dst = t->dst.view + t->dst_skip;
    if (c->kind == SWEEP_BROADCAST || c->kind == SWEEP_SCATTER)
        return oracle_is_input(&t->oracle, c->root, dst, t->out.first, t->out.count);
    for (int owner = 0; owner < c->ranks && t->out.count > 0; owner++) {
        const size_t at = (size_t)owner * c->count;
        const int block = c->kind == SWEEP_ALL_TO_ALL ? t->rank : owner;
        if (!oracle_is_input(&t->oracle, owner, dst + at * size, (size_t)block * c->count,
                             c->count))
            return false;
    }
    return true;
}

/* Of some ranks, in their order. Where nothing comes, an input in place stays. */
static bool prefix_right(const trial *t)
{
    oracle_case some = t->oracle;
    some.ranks = t->rank + (t->c->kind == SWEEP_SCAN);
    some.order = oracle_rank_order;
    if (t->out.count > 0)
        return oracle_is_reduced(&some, t->dst.view, 0, t->out.count);
    return !t->c->in_place || oracle_is_input(&t->oracle, t->rank, t->src.view, 0, t->in.count);
}

static bool output_right(trial *t, const sweep_target *target, const char *algorithm)
{
    if (!sweep_reduces(t->c->kind))
        return moved_right(t);
    if (sweep_is_prefix(t->c->kind))
        return prefix_right(t);
    sweep_order order = {.at = oracle_rank_order};
    if (!target->reproducible && !sweep_order_find(&order, t->c, algorithm, target->hosts))
        return false;
    t->oracle.order = order.at;
    t->oracle.context = &order;
    const bool right = oracle_is_reduced(&t->oracle, t->dst.view + t->dst_skip, t->out.first,
                                         t->out.count);
    sweep_order_free(&order);
    return right;
}

/* @return what is wrong, NULL if nothing. */
static const char *judge(trial *t, const sweep_target *target, const ring_comm_info *info)
{
    if (!went_the_way(t->c, target, t->rank, info))
        return "went another way than the sweep is about";
    if (!output_right(t, target, info->algorithm))
        return "wrong output";
    if (!guarded_intact(&t->src) || !guarded_intact(&t->dst))
        return "wrote out of bounds";
    if (!t->c->in_place &&
        !oracle_is_input(&t->oracle, t->rank, t->src.view + t->src_skip, t->in.first, t->in.count))
        return "changed its input";
    return NULL;
}

/* A call that GPUs run moves nothing by the host. */
static bool was_driven_right(const trial *t, const sweep_target *target, uint64_t sent)
{
    const bool on_device = target->memory == SWEEP_CUDA && !target->by_host && !t->c->shared &&
                           t->c->ranks > 1;
    return !on_device || sent == 0;
}

/* @param[out] info  of the call, as to messages. */
static ring_status run_trial(const trial *t, const sweep_target *target, ring_comm *comm,
                             ring_comm_info *info)
{
    const bool left_out = target->mixed && (t->rank + (int)t->c->seed) % 2 != 0;
    void *stream = target->stream && !left_out ? sweep_stream_new() : NULL;
    ring_comm_get_info(comm, info);
    const uint64_t before = info->messages_sent;
    ring_status status = call_it(t, comm, stream);
    if (stream != NULL)
        sweep_stream_end(stream);
    ring_comm_get_info(comm, info);
    info->messages_sent -= before;
    return status == RING_OK ? ring_comm_status(comm) : status;
}

static void report(const trial *t, const ring_comm_info *info, const char *wrong)
{
    const sweep_case *c = t->c;
    fprintf(stderr, "rank %d of %d: %s %s %s count %zu root %d %s %s %s (%s over %s): %s\n",
            t->rank, c->ranks, plan_collective_name(sweep_collective(c->kind)),
            ring_dtype_name(c->dtype), ring_op_name(c->op), c->count, c->root,
            c->in_place ? "in place" : "out of place", c->shared ? "shared" : "plain",
            c->data == ORACLE_EXACT ? "exact" : "random", info->algorithm, info->transport, wrong);
}

int sweep_run(const sweep_case *given, const sweep_target *target, int rank, ring_comm *comm)
{
    sweep_case of_far = *given; /* which the host does not multiply */
    of_far.op = given->op == RING_PREMUL_SUM ? RING_SUM : given->op;
    const bool on_gpus = target->memory == SWEEP_CUDA && !target->by_host && given->ranks > 1;
    const sweep_case *c = sweep_is_far(target->memory) && !on_gpus ? &of_far : given;
    trial t = prepare(c, target->memory, rank);
    ring_comm_info info = {.size = sizeof info};
    if (target->memory ==
        SWEEP_CUDA) /* cuMemFree waits for the streams of all ranks that share the GPU */
        (void)ring_barrier(comm, NULL);
    const ring_status status = run_trial(&t, target, comm, &info);
    guarded_pull(&t.src);
    guarded_pull(&t.dst);
    if (target->memory == SWEEP_CUDA)
        (void)ring_barrier(comm, NULL);
    const char *wrong = status == RING_OK ? judge(&t, target, &info) : ring_last_error(comm);
    if (wrong == NULL && !was_driven_right(&t, target, info.messages_sent))
        wrong = "was driven by the host";
    if (wrong != NULL)
        report(&t, &info, wrong);
    discard(&t);
    return wrong != NULL;
}

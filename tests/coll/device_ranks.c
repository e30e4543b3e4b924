/* SPDX-License-Identifier: Apache-2.0
 * All memory is the host's: the emulated GPU reads and writes it. Values are whole numbers that
 * every type holds. */
#include "device_ranks.h"

#include "emulated_kernel.h"
#include "kernel_args.h"
#include "kernels.h"
#include "lowering.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

typedef struct one_rank {
    program program;
    plan *plan;
    device_call call;
    char *src, *dst;
    size_t src_bytes, dst_bytes;
    uint64_t numbers[DEVICE_MOST_LANES], stop;
    device_verdict verdicts[DEVICE_MOST_LANES];
} one_rank;

struct device_ranks {
    device_case c;
    uint32_t lanes;
    one_rank of[DEVICE_MOST_RANKS];
    char *boxes;              /* [lanes][receiver][sender][box_bytes()] */
    device_receipt *receipts; /* [lanes][sender][receiver] */
    uint64_t abort;
};

/* ---- Programs ------------------------------------------------------------------------- */

static void lower(device_ranks *all, int rank)
{
    const device_case *c = &all->c;
    one_rank *one = &all->of[rank];
    const plan_world world = {.ranks = c->ranks, .hosts = 1};
    const algo_call wanted = {.collective = c->collective,
                              .world = &world,
                              .rank = rank,
                              .root = c->root,
                              .chunks = c->algorithm->chunks(c->collective, &world, 0)};
    const size_t outstanding = c->apart ? DEVICE_APART_BYTES(c->window) : SIZE_MAX;
    const lowering_limits limits = {.segment = DEVICE_SEGMENT_BYTES(c->window),
                                    .window = 4,
                                    .eager = DEVICE_EAGER_BYTES(c->window),
                                    .outstanding = outstanding,
                                    .scratch = 1 << 14,
                                    .channels = (int32_t)c->lanes,
                                    .per_channel = 64};
    one->plan = c->algorithm->build(&wanted);
    assert_non_null(one->plan);
    one->program.call = (call_signature){.collective = c->collective,
                                         .dtype = c->dtype,
                                         .op = c->op,
                                         .root = c->root,
                                         .count = c->count,
                                         .on_device = true};
    one->program.facts = plan_facts_of(c->collective);
    one->program.src_here = plan_is_on(one->program.facts->src_at, rank, c->root);
    assert_int_equal(program_lower(&limits, one->plan, c->algorithm, &one->program), RING_OK);
}

/* ---- Links ------------------------------------------------------------------------------ */

static void *zeroed(size_t count, size_t bytes)
{
    void *memory = aligned_alloc(64, (count * bytes + 63) / 64 * 64 + 64);
    assert_non_null(memory);
    return memset(memory, 0, count * bytes);
}

static size_t box_bytes(const device_ranks *all)
{
    return all->c.frames * sizeof(device_frame) + all->c.window +
           DEVICE_SLOTS * DEVICE_SLOT_WORDS(all->c.window) * sizeof(uint64_t);
}

static device_box box(const device_ranks *all, uint32_t lane, int receiver, int sender)
{
    const size_t n = (size_t)all->c.ranks;
    char *start = all->boxes +
                  ((lane * n + (size_t)receiver) * n + (size_t)sender) * box_bytes(all);
    return (device_box){.frames = (device_frame *)(void *)start,
                        .carried = start + all->c.frames * sizeof(device_frame),
                        .slots = (uint64_t *)(void *)(start + all->c.frames * sizeof(device_frame) +
                                                      all->c.window)};
}

static device_receipt *receipt(const device_ranks *all, uint32_t lane, int sender, int receiver)
{
    const size_t n = (size_t)all->c.ranks;
    return &all->receipts[(lane * n + (size_t)sender) * n + (size_t)receiver];
}

static void join(device_ranks *all, int rank)
{
    const uint32_t ranks = (uint32_t)all->c.ranks;
    device_link *links = zeroed((size_t)all->lanes * ranks, sizeof *links);
    for (uint32_t lane = 0; lane < all->lanes; lane++)
        for (int peer = 0; peer < all->c.ranks; peer++)
            links[lane * ranks + (uint32_t)peer] =
                (device_link){.in = box(all, lane, rank, peer),
                              .out = box(all, lane, peer, rank),
                              .receipt = receipt(all, lane, rank, peer),
                              .given = receipt(all, lane, peer, rank),
                              .frames = all->c.frames,
                              .window = all->c.window,
                              .apart = all->c.apart && (rank + peer) % 2 != 0};
    all->of[rank].call.links = links;
}

/* ---- Calls -------------------------------------------------------------------------------- */

static int32_t factor_of(int rank)
{
    return rank + 1;
}

static void bind(device_ranks *all, int rank)
{
    const device_case *c = &all->c;
    one_rank *one = &all->of[rank];
    const program *p = &one->program;
    const plan_facts *facts = p->facts;
    const size_t size = ring_dtype_size(c->dtype), n = (size_t)c->ranks;
    const size_t src_blocks = facts->src_blocks ? n : 1, dst_blocks = facts->dst_blocks ? n : 1;
    const bool reads_dst = facts->result == PLAN_ROOTS && !facts->src_blocks;
    one->src_bytes = plan_is_on(facts->src_at, rank, c->root) ? src_blocks * c->count * size : 0;
    one->dst_bytes = plan_is_on(facts->dst_at, rank, c->root) ? dst_blocks * c->count * size : 0;
    one->src = zeroed(one->src_bytes, 1);
    one->dst = zeroed(one->dst_bytes, 1);
    const size_t block = (size_t)rank * c->count * size;
    const bool both = c->in_place && one->src_bytes > 0 && one->dst_bytes > 0;
    char *src = one->src_bytes > 0 || !reads_dst ? one->src : one->dst, *dst = one->dst;
    if (both && facts->in_place == PLAN_SAME)
        src = dst;
    else if (both && facts->in_place == PLAN_DST_IS_BLOCK_OF_SRC)
        dst = src + block;
    else if (both && facts->in_place == PLAN_SRC_IS_BLOCK_OF_DST)
        src = dst + block;
    one->call = (device_call){.ops = p->ops,
                              .operands = p->operands,
                              .peers = p->peers,
                              .links = one->call.links,
                              .numbers = one->numbers,
                              .verdicts = one->verdicts,
                              .abort = &all->abort,
                              .stop = &one->stop,
                              .src = src,
                              .dst = one->dst_bytes > 0 ? dst : NULL,
                              .scratch = zeroed(all->lanes * p->scratch, 1),
                              .scratch_bytes = p->scratch,
                              .signature = 7,
                              .slice = p->slice,
                              .segment = p->segment,
                              .words = c->framed ? 0
                                                 : DEVICE_SLOT_ELEMENTS(c->window,
                                                                        kernel_acc_size(c->dtype)),
                              .nanoseconds = 60000000000,
                              .scale = factor_of(rank),
                              .op_count = p->op_count,
                              .peer_count = p->peer_count,
                              .slices = p->slices,
                              .ranks = c->ranks,
                              .op = (int32_t)c->op};
}

device_ranks *device_ranks_new(const device_case *c)
{
    device_ranks *all = zeroed(1, sizeof *all);
    const size_t n = (size_t)c->ranks;
    all->c = *c;
    if (all->c.window == 0) {
        all->c.frames = DEVICE_FRAMES_MOST;
        all->c.window = DEVICE_WINDOW_MOST;
    }
    for (int r = 0; r < c->ranks; r++)
        lower(all, r);
    all->lanes = (uint32_t)all->of[0].program.channels;
    all->boxes = zeroed(all->lanes * n * n, box_bytes(all));
    all->receipts = zeroed(all->lanes * n * n, sizeof *all->receipts);
    for (int r = 0; r < c->ranks; r++) {
        assert_int_equal(all->of[r].program.channels, all->lanes);
        join(all, r);
        bind(all, r);
    }
    return all;
}

bool device_ranks_launch(device_ranks *all)
{
    program_args args = {.ranks = (uint32_t)all->c.ranks, .lanes = all->lanes};
    for (int r = 0; r < all->c.ranks; r++)
        args.calls[r] = all->of[r].call;
    static const char *const kernels[] = {
#define ROW(type) "program_" #type,
        CUDA_FOLD_TYPES(ROW)
#undef ROW
    };
    const emulated_launch launch = {.kernel = emulated_kernel_find(kernels[all->c.dtype]),
                                    .args = &args,
                                    .grid = args.ranks * args.lanes,
                                    .block = all->c.threads > 0 ? all->c.threads : 3,
                                    .judged = true};
    bool well = emulated_launch_run(&launch);
    for (int r = 0; r < all->c.ranks; r++)
        well = well && all->of[r].stop == 0;
    return well;
}

void device_ranks_free(device_ranks *all)
{
    for (int r = 0; r < all->c.ranks; r++) {
        one_rank *one = &all->of[r];
        free(one->program.ops);
        free(one->program.operands);
        free(one->program.peers);
        free(one->program.on);
        plan_free(one->plan);
        free(one->call.links);
        free(one->call.scratch);
        free(one->src);
        free(one->dst);
    }
    free(all->boxes);
    free(all->receipts);
    free(all);
}

device_call *device_ranks_call(device_ranks *all, int rank)
{
    return &all->of[rank].call;
}

const device_verdict *device_ranks_verdict(const device_ranks *all, int rank, uint32_t lane)
{
    return &all->of[rank].verdicts[lane];
}

uint32_t device_ranks_lanes(const device_ranks *all)
{
    return all->lanes;
}

void device_ranks_abort(device_ranks *all)
{
    __atomic_store_n(&all->abort, 1, __ATOMIC_RELEASE);
}

/* ---- Values ------------------------------------------------------------------------------- */

/* @return element @p i of a rank's input to a call. Sums and averages are exact in every type. */
static int32_t given(const device_case *c, int call, int rank, size_t i)
{
    const size_t drawn = i * 7 + (size_t)rank * 31 + (size_t)call * 13 + i / 3;
    return c->dtype == RING_INT32 ? (int32_t)(drawn % 1000) : (int32_t)(drawn % 2) * c->ranks;
}

/* Of the ranks [0, end), combined. */
static int32_t combined(const device_case *c, int call, int end, size_t i)
{
    int32_t sum = 0;
    for (int r = 0; r < end; r++)
        sum += given(c, call, r, i) * (c->op == RING_PREMUL_SUM ? factor_of(r) : 1);
    return c->op == RING_AVG ? sum / c->ranks : sum;
}

static int32_t expected(const device_case *c, int call, int rank, size_t i)
{
    const size_t block = i / c->count, at = i % c->count;
    switch (c->collective) {
    case PLAN_REDUCE_SCATTER:
        return combined(c, call, c->ranks, (size_t)rank * c->count + i);
    case PLAN_ALL_GATHER:
    case PLAN_GATHER:
        return given(c, call, (int)block, at);
    case PLAN_BROADCAST:
        return given(c, call, c->root, i);
    case PLAN_SCATTER:
        return given(c, call, c->root, (size_t)rank * c->count + i);
    case PLAN_ALL_TO_ALL:
        return given(c, call, (int)block, (size_t)rank * c->count + at);
    case PLAN_SCAN:
        return combined(c, call, rank + 1, i);
    case PLAN_EXSCAN:
        return combined(c, call, rank, i);
    default:
        return combined(c, call, c->ranks, i);
    }
}

/* Element @p i of an array of the call's type. */
static void put(const device_case *c, char *array, size_t i, int32_t value)
{
    const size_t size = ring_dtype_size(c->dtype);
    const kernel_operand in = {.data = &(float){(float)value}, .accumulator = true};
    kernel_operand out = {.data = array + i * size};
    const int64_t whole = value;
    const double real = value;
    if (kernel_is_integer(c->dtype))
        memcpy(out.data, &whole, size); /* the low bytes come first */
    else if (c->dtype == RING_FLOAT64)
        memcpy(out.data, &real, size);
    else
        kernel_fold(&out, 1, &in, 1, 1, c->dtype, RING_SUM, 0);
}

void device_ranks_fill(device_ranks *all, int call)
{
    const size_t size = ring_dtype_size(all->c.dtype);
    for (int r = 0; r < all->c.ranks; r++) {
        one_rank *one = &all->of[r];
        memset(one->dst, 0xa5, one->dst_bytes);
        for (size_t i = 0; i < one->src_bytes / size; i++)
            put(&all->c, one->call.src, i, given(&all->c, call, r, i));
    }
}

static void expect_rank(const device_ranks *all, int call, int rank)
{
    const device_case *c = &all->c;
    const size_t size = ring_dtype_size(c->dtype);
    const char *dst = all->of[rank].call.dst;
    char want[8];
    for (size_t i = 0; i < all->of[rank].dst_bytes / size; i++) {
        put(c, want, 0, expected(c, call, rank, i));
        if (memcmp(dst + i * size, want, size) != 0)
            fail_msg("%s by %s, %s, %d ranks, count %zu, %u lanes, call %d: element %zu of rank %d "
                     "is not %d",
                     plan_collective_name(c->collective), c->algorithm->name,
                     ring_dtype_name(c->dtype), c->ranks, c->count, all->lanes, call, i, rank,
                     expected(c, call, rank, i));
    }
}

void device_ranks_expect(const device_ranks *all, int call)
{
    for (int r = 0; r < all->c.ranks; r++)
        expect_rank(all, call, r);
}

/* SPDX-License-Identifier: Apache-2.0
 * Tests the v-forms: blocks of random lengths at random places, with every algorithm, against the
 * oracle. Wrong arguments are refused, and differing counts are reported.
 * RING_TEST_LONG: more of them. Usage: test_coll_uneven TRANSPORT [GPUS], whose memory has the
 * buffers, over the double of NVIDIA's driver */
#include "coll_sweep.h"
#include "draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "unit_test.h"

enum { MOST = 8, POISON = 0xa5 };

static int gpus; /* 0: all memory is the host's */

typedef enum form { ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, GATHER, SCATTER, FORMS } form;

/* ---- One drawn call ------------------------------------------------------------------------ */

static unsigned drawn(unsigned a, unsigned b, unsigned c)
{
    unsigned h = a * 2654435761u ^ b * 40503u ^ c * 2246822519u;
    h = (h ^ h >> 15) * 2246822519u;
    return h ^ h >> 13;
}

typedef struct trial {
    form kind;
    int rank, ranks, root;
    unsigned seed;
    size_t most;           /* elements of a block */
    bool in_place, listed; /* listed: by the addresses of the blocks */
    oracle_case oracle;
    size_t counts[2][MOST], displs[2][MOST]; /* of src and dst */
    guarded src, dst;                        /* one and the same in place */
    size_t src_skip, dst_skip;
} trial;

/* Some have none, one has by far the most. */
static size_t count_of(const trial *t, int from, int to)
{
    const unsigned pair = t->kind == ALL_TO_ALL ? (unsigned)(from * MOST + to) : (unsigned)from;
    const unsigned h = drawn(t->seed, pair, 1);
    return h % 4 == 0 ? 0 : h % 4 == 1 ? t->most : h / 4 % (t->most / 8 + 2);
}

/* In turns from a drawn rank on, with gaps; other ones on every rank. */
static size_t place(const trial *t, const size_t *counts, size_t *displs, unsigned side)
{
    const unsigned h = drawn(t->seed, (unsigned)t->rank, 7 + side);
    size_t at = h % 3;
    for (int i = 0; i < t->ranks; i++) {
        const int block = (i + (int)(h % 8)) % t->ranks;
        displs[block] = at;
        at += counts[block] + drawn(h, (unsigned)i, 3) % 4;
    }
    return at;
}

static bool has_blocks(const trial *t, int side)
{
    static const bool blocks[FORMS][2] = {[ALL_GATHER] = {false, true},
                                          [REDUCE_SCATTER] = {true, false},
                                          [ALL_TO_ALL] = {true, true},
                                          [GATHER] = {false, true},
                                          [SCATTER] = {true, false}};
    return blocks[t->kind][side];
}

/* Where the block begins in the vector that rank @p from draws its input of. */
static size_t first_of(const trial *t, int from, int to)
{
    size_t first = 0;
    for (int i = 0; i < (t->kind == ALL_TO_ALL ? to : from); i++)
        first += t->kind == ALL_TO_ALL ? count_of(t, from, i) : count_of(t, i, 0);
    return first;
}

static bool gives(const trial *t)
{
    return t->kind != SCATTER || t->rank == t->root;
}

static bool takes(const trial *t)
{
    return t->kind != GATHER || t->rank == t->root;
}

static void draw_counts(trial *t, size_t elements[2])
{
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < t->ranks; i++)
            t->counts[side][i] = t->kind != ALL_TO_ALL ? count_of(t, i, 0)
                                 : side == 0           ? count_of(t, t->rank, i)
                                                       : count_of(t, i, t->rank);
        elements[side] = has_blocks(t, side)
                             ? place(t, t->counts[side], t->displs[side], (unsigned)side)
                             : t->counts[side][t->rank];
        t->oracle.total = 0;
    }
    for (int i = 0; i < t->ranks; i++)
        t->oracle.total += t->kind == ALL_TO_ALL ? (size_t)t->ranks * t->most : count_of(t, i, 0);
}

static void fill(trial *t)
{
    const size_t size = ring_dtype_size(t->oracle.dtype);
    unsigned char *src = t->src.view + t->src_skip;
    memset(t->src.view, POISON, t->src.bytes);
    memset(t->dst.view, POISON, t->dst.bytes);
    for (int i = 0; i < t->ranks && gives(t) && has_blocks(t, 0); i++)
        oracle_fill(&t->oracle, t->rank, src + t->displs[0][i] * size,
                    t->kind == ALL_TO_ALL ? first_of(t, t->rank, i) : first_of(t, i, 0),
                    t->counts[0][i]);
    if (!has_blocks(t, 0))
        oracle_fill(&t->oracle, t->rank, src, first_of(t, t->rank, 0), t->counts[0][t->rank]);
}

static const ring_op ops[] = {RING_SUM, RING_PROD, RING_MAX, RING_MIN, RING_AVG, RING_PREMUL_SUM};

static trial prepare(form kind, int rank, int ranks, unsigned seed, size_t most)
{
    trial t = {.kind = kind, .rank = rank, .ranks = ranks, .seed = seed, .most = most};
    const bool shared = drawn(seed, 0, 4) % 2, wants = drawn(seed, 0, 5) % 2;
    size_t elements[2];
    t.root = (int)(drawn(seed, 0, 6) % (unsigned)ranks);
    const ring_dtype dtype = (ring_dtype)(drawn(seed, 0, 8) % RING_DTYPE_COUNT);
    const ring_op op = ops[drawn(seed, 0, 9) % (sizeof ops / sizeof *ops)];
    t.oracle = (oracle_case){.dtype = dtype,
                             .op = oracle_is_float(dtype) || op != RING_PREMUL_SUM ? op : RING_SUM,
                             .ranks = ranks,
                             .data = ORACLE_EXACT,
                             .order = oracle_rank_order,
                             .seed = seed};
    draw_counts(&t, elements);
    const size_t size = ring_dtype_size(t.oracle.dtype);
    const bool gathers = !has_blocks(&t, 0);
    t.in_place = wants && kind != ALL_TO_ALL && gives(&t) && takes(&t);
    const sweep_memory memory = gpus > 0 ? SWEEP_CUDA : SWEEP_PLAIN;
    t.src = guarded_new((t.in_place ? elements[gathers] : elements[0]) * size, shared, memory);
    t.dst = t.in_place ? t.src : guarded_new(elements[1] * size, shared, memory);
    t.src_skip = t.in_place && gathers ? t.displs[1][rank] * size : 0;
    t.dst_skip = t.in_place && !gathers ? t.displs[0][rank] * size : 0;
    fill(&t);
    guarded_push(&t.src);
    if (!t.in_place)
        guarded_push(&t.dst);
    return t;
}

/* Empty ones lie nowhere. */
static void list_blocks(const trial *t, int side, char *at, void **list)
{
    const size_t size = ring_dtype_size(t->oracle.dtype);
    for (int i = 0; i < t->ranks; i++)
        list[i] = t->counts[side][i] > 0 ? at + t->displs[side][i] * size : NULL;
}

static ring_status call_by_list(const trial *t, ring_comm *comm, const ring_call *call)
{
    void *srcs[MOST], *dsts[MOST], *dst = t->dst.at + t->dst_skip;
    const void *src = t->src.at + t->src_skip;
    const oracle_case *o = &t->oracle;
    const size_t *all = t->counts[0], own = all[t->rank];
    list_blocks(t, 0, (char *)t->src.at, srcs);
    list_blocks(t, 1, (char *)t->dst.at, dsts);
    const void *const *from = (const void *const *)srcs;
    switch (t->kind) {
    case ALL_GATHER:
        return ring_all_gather_list(src, dsts, all, o->dtype, comm, call);
    case REDUCE_SCATTER:
        return ring_reduce_scatter_list(from, all, dst, o->dtype, o->op, comm, call);
    case ALL_TO_ALL:
        return ring_all_to_all_list(from, all, dsts, t->counts[1], o->dtype, comm, call);
    case GATHER:
        return ring_gather_list(src, own, takes(t) ? dsts : NULL, takes(t) ? all : NULL, o->dtype,
                                t->root, comm, call);
    default:
        return ring_scatter_list(gives(t) ? from : NULL, gives(t) ? all : NULL, dst, own, o->dtype,
                                 t->root, comm, call);
    }
}

static ring_status call_it(const trial *t, ring_comm *comm)
{
    const void *src = gives(t) ? t->src.at + t->src_skip : NULL;
    void *dst = takes(t) ? t->dst.at + t->dst_skip : NULL;
    const size_t own = t->counts[0][t->rank];
    const size_t *all = gives(t) && takes(t) ? t->counts[0] : NULL;
    const size_t *src_at = gives(t) ? t->displs[0] : NULL, *dst_at = takes(t) ? t->displs[1] : NULL;
    const oracle_case *o = &t->oracle;
    const double factor = oracle_factor(o, t->rank);
    ring_call call = RING_CALL_INIT;
    call.scale = o->op == RING_PREMUL_SUM && t->kind == REDUCE_SCATTER ? &factor : NULL;
    if (t->listed)
        return call_by_list(t, comm, &call);
    switch (t->kind) {
    case ALL_GATHER:
        return ring_all_gather_v(src, dst, all, dst_at, o->dtype, comm, NULL);
    case REDUCE_SCATTER:
        return ring_reduce_scatter_v(src, all, src_at, dst, o->dtype, o->op, comm, &call);
    case ALL_TO_ALL:
        return ring_all_to_all_v(src, all, src_at, dst, t->counts[1], dst_at, o->dtype, comm, NULL);
    case GATHER:
        return ring_gather_v(src, own, dst, all, dst_at, o->dtype, t->root, comm, NULL);
    default:
        return ring_scatter_v(src, all, src_at, dst, own, o->dtype, t->root, comm, NULL);
    }
}

/* ---- Judging ------------------------------------------------------------------------------- */

static bool block_right(const trial *t, int from, const unsigned char *at)
{
    const size_t count = t->counts[1][has_blocks(t, 1) ? from : t->rank];
    if (t->kind == REDUCE_SCATTER)
        return oracle_is_reduced(&t->oracle, at, first_of(t, t->rank, 0), count);
    if (t->kind == SCATTER)
        return oracle_is_input(&t->oracle, t->root, at, first_of(t, t->rank, 0), count);
    return oracle_is_input(&t->oracle, from, at, first_of(t, from, t->rank), count);
}

static bool output_right(const trial *t)
{
    const size_t size = ring_dtype_size(t->oracle.dtype);
    const unsigned char *dst = t->dst.view + t->dst_skip;
    if (!has_blocks(t, 1))
        return block_right(t, t->rank, dst);
    for (int from = 0; from < t->ranks; from++)
        if (!block_right(t, from, dst + t->displs[1][from] * size))
            return false;
    return true;
}

/* Between the blocks of a buffer nothing is written. */
static bool gaps_intact(const trial *t, int side, const guarded *g)
{
    const size_t size = ring_dtype_size(t->oracle.dtype);
    bool right = true;
    for (size_t at = 0; at < g->bytes && right; at += size) {
        bool covered = false;
        for (int i = 0; i < t->ranks && !covered; i++)
            covered = at / size - t->displs[side][i] < t->counts[side][i];
        for (size_t k = 0; k < size && !covered; k++)
            right &= g->view[at + k] == POISON;
    }
    return right;
}

static bool input_unchanged(const trial *t)
{
    const size_t size = ring_dtype_size(t->oracle.dtype);
    if (t->in_place || !gives(t))
        return true;
    if (!has_blocks(t, 0))
        return oracle_is_input(&t->oracle, t->rank, t->src.view, first_of(t, t->rank, 0),
                               t->counts[0][t->rank]);
    for (int i = 0; i < t->ranks; i++)
        if (!oracle_is_input(&t->oracle, t->rank, t->src.view + t->displs[0][i] * size,
                             t->kind == ALL_TO_ALL ? first_of(t, t->rank, i) : first_of(t, i, 0),
                             t->counts[0][i]))
            return false;
    return true;
}

static const char *judge(const trial *t)
{
    if (takes(t) && !output_right(t))
        return "wrong output";
    if (!guarded_intact(&t->src) || !guarded_intact(&t->dst))
        return "wrote out of bounds";
    if (t->most < 1000 && takes(t) && has_blocks(t, 1) && !gaps_intact(t, 1, &t->dst))
        return "wrote into a gap";
    return input_unchanged(t) ? NULL : "changed its input";
}

static int try_one(form kind, int rank, int ranks, unsigned seed, size_t most, bool listed,
                   ring_comm *comm)
{
    ring_comm_info before = {.size = sizeof before}, after = {.size = sizeof after};
    trial t = prepare(kind, rank, ranks, seed, most);
    t.listed = listed;
    if (gpus > 0) /* cuMemAlloc and cuMemFree wait for the streams of all ranks */
        (void)ring_barrier(comm, NULL);
    ring_comm_get_info(comm, &before);
    const ring_status status = call_it(&t, comm);
    ring_comm_get_info(comm, &after);
    guarded_pull(&t.src);
    guarded_pull(&t.dst);
    if (gpus > 0)
        (void)ring_barrier(comm, NULL);
    const char *wrong = status == RING_OK ? judge(&t) : ring_last_error(comm);
    /* Only two ranks know a count of the other forms, which need a GPU for each rank. */
    const bool runs = kind == ALL_GATHER || kind == REDUCE_SCATTER || gpus >= ranks;
    if (wrong == NULL && gpus > 0 && runs && ranks > 1 && !t.src.shared &&
        after.messages_sent != before.messages_sent)
        wrong = "was driven by the host";
    if (wrong != NULL)
        fprintf(stderr, "form %d%s, rank %d of %d, seed %u, most %zu, %s %s%s: %s\n", (int)kind,
                listed ? ", listed" : "", rank, ranks, seed, most, ring_dtype_name(t.oracle.dtype),
                ring_op_name(t.oracle.op), t.in_place ? ", in place" : "", wrong);
    if (!t.in_place)
        guarded_free(&t.dst);
    guarded_free(&t.src);
    return wrong != NULL;
}

/* By displacements, by addresses, and each on some ranks. */
static int try_ways(form kind, int rank, int ranks, unsigned seed, size_t most, ring_comm *comm)
{
    return try_one(kind, rank, ranks, seed, most, false, comm) != 0 ||
           try_one(kind, rank, ranks, seed, most, true, comm) != 0 ||
           try_one(kind, rank, ranks, seed, most, rank % 2 == 0, comm) != 0;
}

static int try_many(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    static const size_t most[] = {1, 7, 60, 700, 9000, 120000};
    enum { SIZES = sizeof most / sizeof *most };
    const int seeds = test_is_long() ? 8 : 2;
    unsigned seed = (unsigned)test_seed() * 100000 + (unsigned)ranks * 1000;
    for (int kind = 0; kind < FORMS; kind++)
        for (int size = 0; size < SIZES; size++)
            for (int i = 0; i < (size < 4 ? seeds : 1); i++)
                if (try_ways((form)kind, rank, ranks, seed++, most[size], comm) != 0)
                    return 1;
    return 0;
}

static int try_on_gpu(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    sweep_use_gpu(rank % gpus);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const int failed = try_many(comm, rank, ranks, board);
    ring_comm_destroy(comm);
    return failed;
}

static void test_drawn_blocks_are_right_on_gpus(void **state)
{
    static const char *const algorithms[] = {"", "direct", "ring"};
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
        setenv("RING_ALGO", algorithms[a], 1);
        for (int ranks = 2; ranks <= 3; ranks++)
            assert_int_equal(harness_run(cases_kind(), ranks, try_on_gpu, NULL, NULL), 0);
    }
    unsetenv("RING_ALGO");
}

/* tree serves none of them: they go by another one then. */
static void test_drawn_blocks_are_right_by_every_algorithm(void **state)
{
    static const char *const algorithms[] = {"", "oneshot", "direct", "ring", "chain", "tree"};
    static const int ranks[] = {1, 2, 3, 5};
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
        setenv("RING_ALGO", algorithms[a], 1);
        for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
            run_joined(ranks[i], try_many);
    }
    unsetenv("RING_ALGO");
}

static void test_several_channels_share_the_agreed_forms(void **state)
{
    setenv("RING_CHANNELS", "3", 1);
    run_joined(3, try_many);
    unsetenv("RING_CHANNELS");
}

/* ---- The same as the even forms ------------------------------------------------------------- */

static int equal_counts_give_the_bits_of_the_even_form(ring_comm *comm, int rank, int ranks,
                                                       harness_board *board)
{
    enum { COUNT = 5003, MOST_RANKS = 3 };
    static float src[MOST_RANKS][COUNT * MOST_RANKS], even[MOST_RANKS][COUNT],
        uneven[MOST_RANKS][COUNT];
    const size_t counts[MOST_RANKS] = {COUNT, COUNT, COUNT};
    for (int i = 0; i < COUNT * MOST_RANKS; i++)
        src[rank][i] = (float)drawn((unsigned)rank, (unsigned)i, 2) / 3e7f;
    EXPECT_OK(
        ring_reduce_scatter(src[rank], even[rank], COUNT, RING_FLOAT32, RING_SUM, comm, NULL));
    EXPECT_OK(ring_reduce_scatter_v(src[rank], counts, NULL, uneven[rank], RING_FLOAT32, RING_SUM,
                                    comm, NULL));
    EXPECT(memcmp(even[rank], uneven[rank], sizeof even[rank]) == 0, "other bits");
    return 0;
}

/* Sums of these depend on their order. */
static float number_of(int rank, size_t i)
{
    return (float)drawn((unsigned)rank, (unsigned)i, 2) / 3e7f;
}

static int sums_in_rank_order(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    const size_t counts[3] = {10, 4001, 700}, first = rank == 0 ? 0 : rank == 1 ? 10 : 4011;
    float *src = malloc(4711 * sizeof *src), *dst = malloc(counts[rank] * sizeof *dst);
    for (size_t i = 0; i < 4711; i++)
        src[i] = number_of(rank, i);
    EXPECT_OK(ring_reduce_scatter_v(src, counts, NULL, dst, RING_FLOAT32, RING_SUM, comm, NULL));
    for (size_t i = 0; i < counts[rank]; i++) {
        const float sum = number_of(0, first + i) + number_of(1, first + i);
        EXPECT(dst[i] == sum + number_of(2, first + i), "element %zu", i);
    }
    free(src);
    free(dst);
    return 0;
}

static void test_reproducible_sums_are_in_rank_order(void **state)
{
    static const char *const algorithms[] = {"", "oneshot", "direct", "chain"};
    setenv("RING_REPRODUCIBLE", "1", 1);
    for (size_t a = 0; a < sizeof algorithms / sizeof *algorithms; a++) {
        setenv("RING_ALGO", algorithms[a], 1);
        run_joined(3, sums_in_rank_order);
    }
    unsetenv("RING_ALGO");
    unsetenv("RING_REPRODUCIBLE");
}

/* Two shapes in turn, and one given in two ways, are lowered twice. */
static int a_call_of_the_same_counts_is_lowered_once(ring_comm *comm, int rank, int ranks,
                                                     harness_board *board)
{
    const size_t counts[2][3] = {{3, 0, 70}, {1, 2, 3}}, displs[3] = {0, 3, 3};
    int32_t src[70] = {0}, dst[80];
    ring_comm_info info = {.size = sizeof info};
    for (int i = 0; i < 20; i++) {
        EXPECT_OK(ring_all_gather_v(src, dst, counts[i % 2], i % 4 == 0 ? displs : NULL, RING_INT32,
                                    comm, NULL));
    }
    EXPECT_OK(ring_comm_get_info(comm, &info));
    EXPECT(info.lowered == 2, "%llu programs", (unsigned long long)info.lowered);
    return 0;
}

/* ---- Wrong arguments ----------------------------------------------------------------------- */

static int wrong_arguments_are_refused_before_anything_is_sent(int rank, int ranks,
                                                               harness_board *board, void *arg)
{
    const size_t two[2] = {2, 2}, over[2] = {0, 1}, huge[2] = {SIZE_MAX / 2, SIZE_MAX / 2},
                 far[2] = {SIZE_MAX - 1, 0}, none[2] = {0, 0};
    const size_t others[2] = {rank == 0 ? 3 : 2, rank == 1 ? 3 : 2};
    float x[8] = {0}, y[8];
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_REFUSED(ring_all_gather_v(x, y, NULL, NULL, RING_FLOAT32, comm, NULL),
                   "counts of dst are NULL");
    EXPECT_REFUSED(ring_all_gather_v(x, y, two, over, RING_FLOAT32, comm, NULL), "overlap in dst");
    EXPECT_REFUSED(ring_reduce_scatter_v(x, two, over, y, RING_FLOAT32, RING_SUM, comm, NULL),
                   "overlap in src");
    EXPECT_REFUSED(ring_all_gather_v(x, y, huge, NULL, RING_FLOAT32, comm, NULL),
                   "memory can hold");
    EXPECT_REFUSED(ring_all_gather_v(x, y, two, far, RING_FLOAT32, comm, NULL), "memory can hold");
    EXPECT_REFUSED(ring_all_gather_v(NULL, y, two, NULL, RING_FLOAT32, comm, NULL), "src is NULL");
    EXPECT_REFUSED(ring_all_to_all_v(x, two, NULL, x, two, NULL, RING_FLOAT32, comm, NULL),
                   "overlap");
    EXPECT_REFUSED(ring_all_to_all_v(x, others, NULL, y, two, NULL, RING_FLOAT32, comm, NULL),
                   "sends itself 3 elements and expects 2");
    EXPECT_REFUSED(ring_gather_v(x, 2, y, two, NULL, RING_FLOAT32, ranks, comm, NULL), "root is 2");
    EXPECT_REFUSED(ring_scatter_v(x, two, NULL, y, 2, (ring_dtype)99, 0, comm, NULL), "dtype");
    EXPECT_OK(ring_all_gather_v(NULL, NULL, none, far, RING_FLOAT32, comm, NULL));
    EXPECT_OK(ring_all_to_all_v(x, two, over, y, two, NULL, RING_FLOAT32, comm, NULL));
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Predictions --------------------------------------------------------------------------- */

static double predicted(ring_comm *comm)
{
    ring_comm_info info = {.size = sizeof info};
    return ring_comm_get_info(comm, &info) == RING_OK ? info.predicted_us : -1;
}

/* By the longest block that the rank knows, though ranks do not agree on one. */
static int what_is_predicted_grows_with_the_counts(ring_comm *comm, int rank, int ranks,
                                                   harness_board *board)
{
    enum { BLOCK = 200000 };
    const size_t counts[2] = {BLOCK, BLOCK}, short_ones[2] = {1, 1};
    float *x = calloc(2 * BLOCK, sizeof *x), *y = calloc(2 * BLOCK, sizeof *y);
    EXPECT_OK(ring_all_to_all(x, y, BLOCK, RING_FLOAT32, comm, NULL));
    const double even = predicted(comm);
    EXPECT_OK(ring_all_to_all_v(x, counts, NULL, y, counts, NULL, RING_FLOAT32, comm, NULL));
    const double same = predicted(comm);
    EXPECT_OK(
        ring_all_to_all_v(x, short_ones, NULL, y, short_ones, NULL, RING_FLOAT32, comm, NULL));
    const double less = predicted(comm);
    const bool crowded = even == 0 && same == 0 && less == 0;
    EXPECT(crowded || (same > even / 2 && same < even * 2 && less < same / 2), "%g, %g and %g us",
           even, same, less);
    free(x);
    free(y);
    return 0;
}

/* The same longest block, and one of another length. */
static int different_counts(int rank, int ranks, harness_board *board, void *arg)
{
    const size_t counts[3] = {5, rank == 1 ? 2 : 3, 4};
    float x[16] = {0}, y[16];
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_all_gather_v(x, y, counts, NULL, RING_FLOAT32, comm, NULL) == RING_ERR_MISMATCH,
           "%s", ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "checksum of counts") != NULL, "%s",
           ring_last_error(comm));
    ring_comm_destroy(comm);
    return 0;
}

/* A count that a packed signature cannot hold is not taken for another one. */
static int different_types(int rank, int ranks, harness_board *board, void *arg)
{
    enum { LONG = 2 << 20 };
    const size_t counts[2] = {LONG, LONG};
    char *x = calloc(LONG, 1), *y = calloc(LONG, 2);
    ring_comm *comm;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_all_gather_v(x, y, counts, NULL, rank == 0 ? RING_UINT8 : RING_INT8, comm, NULL) ==
               RING_ERR_MISMATCH,
           "%s", ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "longest count 2097152,") != NULL ||
               strstr(ring_last_error(comm), "longest count 1048575 or more") != NULL,
           "%s", ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), "count 1048575,") == NULL, "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    free(x);
    free(y);
    return 0;
}

/* Rank 1 gives rank 0 more, or less, than it expects: short, long, and longer by whole frames. */
static int different_lengths(int rank, int ranks, harness_board *board, void *arg)
{
    static const size_t given[][2] = {{3, 2},      {0, 1},          {9000, 8000},   {20, 70000},
                                      {70000, 20}, {131072, 65536}, {65536, 131072}};
    const size_t *pair = given[*(const int *)arg];
    const size_t out[2] = {rank == 1 ? pair[0] : 1, 1}, in[2] = {1, rank == 0 ? pair[1] : 1};
    char wanted[64];
    ring_comm *comm;
    float *x = calloc(140000, sizeof *x), *y = calloc(140000, sizeof *y);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(ring_all_to_all_v(x, out, NULL, y, in, NULL, RING_FLOAT32, comm, NULL) ==
                   RING_ERR_MISMATCH ||
               ring_barrier(comm, NULL) == RING_ERR_MISMATCH,
           "pair %d: %s", *(const int *)arg, ring_last_error(comm));
    snprintf(wanted, sizeof wanted, "sends %zu elements", pair[0]);
    EXPECT(strstr(ring_last_error(comm), wanted) != NULL, "%s", ring_last_error(comm));
    ring_comm_destroy(comm);
    free(x);
    free(y);
    return 0;
}

static void test_different_counts_are_shown_on_all_ranks(void **state)
{
    run(3, different_counts);
    run(2, different_types);
    for (int i = 0; i < 7; i++)
        assert_int_equal(harness_run(cases_kind(), 2, different_lengths, &i, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drawn_blocks_are_right_by_every_algorithm),
        cmocka_unit_test(test_several_channels_share_the_agreed_forms),
        CASE(equal_counts_give_the_bits_of_the_even_form, 3),
        cmocka_unit_test(test_reproducible_sums_are_in_rank_order),
        CASE(a_call_of_the_same_counts_is_lowered_once, 3),
        CASE(what_is_predicted_grows_with_the_counts, 2),
        CASE_ALONE(wrong_arguments_are_refused_before_anything_is_sent, 2),
        cmocka_unit_test(test_different_counts_are_shown_on_all_ranks),
    };
    const struct CMUnitTest on_gpus[] = {cmocka_unit_test(test_drawn_blocks_are_right_on_gpus)};
    cases_begin(argc, argv);
    gpus = argc > 2 ? atoi(argv[2]) : 0;
    if (gpus > 0 && cases_kind() == HARNESS_THREADS)
        sweep_start_gpu();
    return gpus > 0 ? cmocka_run_group_tests(on_gpus, NULL, NULL)
                    : cmocka_run_group_tests(tests, NULL, NULL);
}

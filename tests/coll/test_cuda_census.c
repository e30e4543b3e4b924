/* SPDX-License-Identifier: Apache-2.0
 * Counts the calls of NVIDIA's driver that libring makes for one all_reduce of GPU memory, per
 * rank, over the double of that driver, and holds them to budgets. Two ranks share a GPU, or have
 * one each. A budget that is missed is printed; it fails the test unless the table says that the
 * cell exceeds it so far. Usage: test_coll_cuda_census TRANSPORT shared|own [print];
 * RING_TEST_LONG: 256 MiB, too. */
#include "harness.h"

#include "doubles/cuda/fake_cuda_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

enum { RANKS = 2, MOST_ROWS = 1024, NO_LIMIT = 1 << 30, MOST_TRIES = 5000 };

static const char *transport;
static bool owns, only_prints;
static fake_cuda_census_row rows[MOST_ROWS];
static int row_count;
static cuda_table cu;
static fake_cuda_table fake;

/* ---- Cells -------------------------------------------------------------------------------- */

/* The most calls and launches for a rank. No cell has a host function, a copy, an allocation or a
 * synchronisation. */
typedef struct cell {
    bool streamed;
    size_t bytes;
    int calls, launches;
    bool exceeded; /* so far: calls or launches are more, which is no failure */
} cell;

/* The host drives the calls. */
static const cell driven[] = {
    {false, 8, 12, NO_LIMIT, false},
    {false, 256 << 10, 14, NO_LIMIT, true},
    {false, 16 << 20, NO_LIMIT, 64, true},
    {false, 256 << 20, NO_LIMIT, 64, true},
    {true, 8, NO_LIMIT, NO_LIMIT, false},
    {true, 256 << 10, NO_LIMIT, NO_LIMIT, false},
    {true, 16 << 20, NO_LIMIT, NO_LIMIT, false},
    {true, 256 << 20, NO_LIMIT, NO_LIMIT, false},
};
/* One launch runs the calls of both ranks, which share a GPU and call at the same time. The rank
 * that launches makes one more call than the other. */
static const cell together[] = {
    {false, 8, 9, 1, false},        {false, 256 << 10, 9, 1, false},
    {false, 16 << 20, 9, 1, false}, {false, 256 << 20, 9, 1, false},
    {true, 8, 9, 1, false},         {true, 256 << 10, 9, 1, false},
    {true, 16 << 20, 9, 1, false},  {true, 256 << 20, 9, 1, false},
};
/* A launch for each rank. */
static const cell alone[] = {
    {false, 8, 7, 1, false},        {false, 256 << 10, 7, 1, false},
    {false, 16 << 20, 7, 1, false}, {false, 256 << 20, 7, 1, false},
    {true, 8, 7, 1, false},         {true, 256 << 10, 7, 1, false},
    {true, 16 << 20, 7, 1, false},  {true, 256 << 20, 7, 1, false},
};
enum { CELLS = sizeof driven / sizeof *driven };

static size_t most_bytes(void)
{
    return getenv("RING_TEST_LONG") != NULL ? (size_t)256 << 20 : (size_t)16 << 20;
}

static int per_rank(uint64_t calls, int ranks)
{
    return (int)((calls + (uint64_t)ranks - 1) / (uint64_t)ranks);
}

/* Prints a miss. @return 1 if it is a failure. */
static int judge(const cell *c, const char *name, int value, int most, bool exceeded)
{
    if (value <= most)
        return 0;
    printf("  MISS: %zu bytes%s: %s: %d, at most %d\n", c->bytes, c->streamed ? " on a stream" : "",
           name, value, most);
    return !exceeded;
}

static void print_functions(int count, int ranks)
{
    printf("   ");
    for (int i = 0; i < count; i++) {
        uint64_t calls = 0;
        bool first = rows[i].of_library;
        for (int k = 0; k < count; k++) {
            if (!rows[k].of_library || rows[k].function != rows[i].function)
                continue;
            first = first && k >= i;
            calls += rows[k].calls;
        }
        if (first)
            printf(" %s %.1f", rows[i].function + 2, (double)calls / ranks);
    }
    printf("\n");
}

/* The counts of a thread tell which thread did the work. */
static void print_threads(int count)
{
    printf("    by thread:");
    for (int i = 0; i < count; i++) {
        bool first = rows[i].of_library;
        for (int k = 0; k < i; k++)
            first = first && !(rows[k].of_library && rows[k].thread == rows[i].thread);
        if (first)
            printf(" %llu",
                   (unsigned long long)fake.census_sum(rows, count, true, rows[i].thread).calls);
    }
    printf("\n");
}

/* A call that waits for more than 10 ms polls the health of the GPU from time to time, by a query
 * in relaxed capture mode. On a busy machine that adds to the counts, so budgets leave it out. The
 * first query of a call without a stream is that of the default stream. @return the calls for such
 * polls. */
static uint64_t polls_of_health(const cell *c, int count, int ranks)
{
    uint64_t queries = 0;
    const uint64_t others = c->streamed ? 0 : 3 * (uint64_t)ranks;
    for (int i = 0; i < count; i++)
        if (rows[i].of_library && (strcmp(rows[i].function, "cuStreamQuery") == 0 ||
                                   strstr(rows[i].function, "CaptureMode") != NULL))
            queries += rows[i].calls;
    return queries > others ? queries - others : 0;
}

/* @param ranks  of this process. */
static int report(const cell *c, int ranks)
{
    const int count = row_count;
    const fake_cuda_census sum = fake.census_sum(rows, count, true, 0);
    const int calls = per_rank(sum.calls, ranks), launches = per_rank(sum.launches, ranks);
    int failures = 0;
    printf("%-5s %-7s %9zu bytes: %5d calls, %4d launches, %3d words, %3d host functions, "
           "%3d synchronisations, %3d copies, %3d allocations\n",
           transport, c->streamed ? "stream" : "-", c->bytes, calls, launches,
           per_rank(sum.words, ranks), per_rank(sum.functions, ranks),
           per_rank(sum.synchronisations, ranks), per_rank(sum.copies, ranks),
           per_rank(sum.allocations, ranks));
    print_functions(count, ranks);
    print_threads(count);
    failures += judge(c, "calls", per_rank(sum.calls - polls_of_health(c, count, ranks), ranks),
                      c->calls, c->exceeded);
    failures += judge(c, "launches", launches, c->launches, c->exceeded);
    failures += judge(c, "host functions", (int)sum.functions, 0, false);
    failures += judge(c, "synchronisations", (int)sum.synchronisations, 0, false);
    failures += judge(c, "copies and memsets", (int)sum.copies, 0, false);
    failures += judge(c, "allocations and frees", (int)sum.allocations, 0, false);
    fflush(stdout);
    return failures;
}

/* ---- Ranks -------------------------------------------------------------------------------- */

static void load_driver(void)
{
    cu = cuda_functions();
    fake = fake_cuda_functions();
}

static int start_gpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    return 0;
}

/* Ranks meet by shared memory, for a barrier would be counted. */
static int meet(harness_board *board, int *meetings)
{
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ++*meetings * RANKS), "a rank is late");
    return 0;
}

/* Spins, so that ranks that both have a core go on within a microsecond. */
static int meet_awake(harness_board *board, int *meetings)
{
    const int all = ++*meetings * RANKS;
    const double end = harness_now() + 10 * HARNESS_PROMPT;
    atomic_fetch_add(&board->counters[0], 1);
    while (atomic_load(&board->counters[0]) < all && harness_now() < end)
        continue;
    EXPECT(atomic_load(&board->counters[0]) >= all, "a rank is late");
    return 0;
}

static int sum(const cell *c, CUdeviceptr src, CUdeviceptr dst, CUstream stream, ring_comm *comm)
{
    ring_call call = RING_CALL_INIT;
    call.stream = stream;
    EXPECT_OK(ring_all_reduce((void *)(uintptr_t)src, (void *)(uintptr_t)dst, c->bytes / 4,
                              RING_FLOAT32, RING_SUM, comm, c->streamed ? &call : NULL));
    EXPECT_CUDA(cu.stream_synchronize(stream));
    return 0;
}

static int is_right(const cell *c, CUdeviceptr dst, CUstream stream)
{
    float ends[2];
    EXPECT_CUDA(cu.copy_async((uintptr_t)&ends[0], dst, 4, stream));
    EXPECT_CUDA(cu.copy_async((uintptr_t)&ends[1], dst + c->bytes - 4, 4, stream));
    EXPECT_CUDA(cu.stream_synchronize(stream));
    EXPECT(ends[0] == RANKS && ends[1] == RANKS, "wrong values: %g, %g", (double)ends[0],
           (double)ends[1]);
    return 0;
}

static bool is_process(void)
{
    return harness_kind_of(transport) == HARNESS_PROCESSES;
}

static bool shares_launches(void)
{
    return !owns && !is_process();
}

/* @return true if a stream waited for a word, since the ranks did not call at the same time. */
static bool has_parked(void)
{
    for (int i = 0; i < row_count; i++)
        if (rows[i].of_library && strstr(rows[i].function, "WaitValue") != NULL)
            return true;
    return false;
}

/* Counts the driver calls of one call. Repeats it if ranks that share launches did not call at the
 * same time. */
static int count_call(int rank, const cell *c, CUdeviceptr src, CUdeviceptr dst, CUstream stream,
                      ring_comm *comm, harness_board *board, int *meetings)
{
    const bool counts = is_process() || rank == 0;
    for (int tries = 0; tries < MOST_TRIES; tries++) {
        EXPECT(meet(board, meetings) == 0, "rank %d", rank);
        if (counts)
            fake.census_begin();
        EXPECT(meet_awake(board, meetings) == 0, "rank %d", rank);
        EXPECT(sum(c, src, dst, stream, comm) == 0, "rank %d", rank);
        EXPECT(meet(board, meetings) == 0, "rank %d", rank);
        if (rank == 0) {
            row_count = fake.census_end(rows, MOST_ROWS);
            atomic_store(&board->counters[1], shares_launches() && has_parked());
        }
        EXPECT(meet(board, meetings) == 0, "rank %d", rank);
        if (atomic_load(&board->counters[1]) == 0)
            return 0;
    }
    EXPECT(false, "the ranks never called at the same time");
    return 0;
}

static int rank_main(int rank, int ranks, harness_board *board, void *arg)
{
    CUcontext context;
    CUstream stream;
    CUdeviceptr src, dst;
    ring_comm *comm;
    int meetings = 0, failures = 0;
    EXPECT(start_gpu() == 0, "no GPU");
    EXPECT_CUDA(cu.primary_retain(&context, owns ? rank : 0));
    EXPECT_CUDA(cu.set_current(context));
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_CUDA(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.mem_alloc(&src, most_bytes()));
    EXPECT_CUDA(cu.mem_alloc(&dst, most_bytes()));
    EXPECT_CUDA(cu.set_words_async(src, 0x3f800000, most_bytes() / 4, stream)); /* 1.0f */
    EXPECT_CUDA(cu.stream_synchronize(stream));
    const cell *cells = owns ? alone : is_process() ? driven : together;
    for (int i = 0; i < CELLS; i++) {
        if (cells[i].bytes > most_bytes())
            continue;
        EXPECT(sum(&cells[i], src, dst, stream, comm) == 0, "rank %d warms up", rank);
        EXPECT(count_call(rank, &cells[i], src, dst, stream, comm, board, &meetings) == 0,
               "rank %d", rank);
        if (rank == 0)
            failures += report(&cells[i], is_process() ? 1 : RANKS);
        EXPECT(is_right(&cells[i], dst, stream) == 0, "rank %d", rank);
        EXPECT(meet(board, &meetings) == 0, "rank %d", rank); /* nothing more is counted */
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    EXPECT(only_prints || failures == 0, "%d budgets are missed", failures);
    return 0;
}

static void counts_are_within_budgets(void **state)
{
    assert_int_equal(harness_run_apart(transport, RANKS, rank_main, NULL, start_gpu), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts_are_within_budgets)};
    if (argc < 3 || argc > 4)
        return 2;
    transport = argv[1];
    owns = strcmp(argv[2], "own") == 0;
    only_prints = argc == 4 && strcmp(argv[3], "print") == 0;
    harness_use(transport);
    return cmocka_run_group_tests_name("coll.cuda_census", tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Tests how much memory of GPUs communicators take whose calls GPUs run, over the double of
 * NVIDIA's driver.
 * Usage: test_coll_device_memory shared|own|processes|mps: threads that share a GPU, threads with
 * one each, processes with one each, or processes that share one */
#include "harness.h"

#include "cuda_table.h"
#include "draw.h"
#include "fake_cuda_table.h"
#include "sample_kernels.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit_test.h"

enum { COUNT = 5003 };
#define MEBIBYTE ((uint64_t)1 << 20)

static bool shares, forks; /* threads share a launch; ranks are processes */
static bool is_one_gpu;
static cuda_table cu;
static fake_cuda_table fake;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void load_driver(void)
{
    cu = cuda_functions();
    fake = fake_cuda_functions();
}

static void run(int ranks, harness_body body)
{
    const harness_kind kind = forks ? HARNESS_PROCESSES : HARNESS_THREADS;
    assert_int_equal(harness_run(kind, ranks, body, NULL, NULL), 0);
}

/* ---- Ranks -------------------------------------------------------------------------------- */

typedef struct player {
    int rank, ranks, meetings;
    harness_board *board;
    CUstream stream;
    CUdeviceptr src, dst; /* COUNT int32 */
    int32_t host[COUNT];
} player;

static int sit_down(player *p, int rank, int ranks, harness_board *board)
{
    CUcontext context;
    *p = (player){.rank = rank, .ranks = ranks, .board = board};
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    EXPECT_CUDA(cu.primary_retain(&context, is_one_gpu ? 0 : rank));
    EXPECT_CUDA(cu.set_current(context));
    EXPECT_CUDA(cu.stream_create(&p->stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.mem_alloc(&p->src, sizeof p->host));
    EXPECT_CUDA(cu.mem_alloc(&p->dst, sizeof p->host));
    return 0;
}

static int leave(player *p)
{
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    EXPECT_CUDA(cu.stream_destroy(p->stream));
    EXPECT_CUDA(cu.mem_free(p->src));
    EXPECT_CUDA(cu.mem_free(p->dst));
    return 0;
}

/* Waits for all ranks without a call of the library. */
static int meet(player *p)
{
    const int counter = p->meetings++;
    atomic_fetch_add(&p->board->counters[counter], 1);
    EXPECT(harness_await(p->board, counter, p->ranks), "a rank is late");
    return 0;
}

static int ranks_here(const player *p)
{
    return forks ? 1 : p->ranks;
}

static fake_cuda_counts counts(void)
{
    fake_cuda_counts now;
    fake.counters(&now);
    return now;
}

/* ---- Membership --------------------------------------------------------------------------- */

static int join_and_measure(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0 && meet(&p) == 0, "rank %d", rank);
    const uint64_t before = counts().device_bytes;
    EXPECT(meet(&p) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(meet(&p) == 0, "rank %d", rank);
    const uint64_t taken = counts().device_bytes - before, here = (uint64_t)ranks_here(&p);
    EXPECT(taken > here * MEBIBYTE, "%llu bytes: GPUs run no calls", (unsigned long long)taken);
    EXPECT(taken <= here * 16 * MEBIBYTE, "%d ranks: %llu bytes for %d", ranks,
           (unsigned long long)taken, (int)here);
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return 0;
}

static void test_a_member_takes_16_mib(void **state)
{
    setenv("RING_DEVICE_BLOCKS", "64", 1);
    run(2, join_and_measure);
    run(8, join_and_measure);
    unsetenv("RING_DEVICE_BLOCKS");
}

/* ---- Derived communicators ------------------------------------------------------------------ */

static int32_t element(int rank, int round, int i)
{
    return i % 1000 + rank * 7 + round * 3;
}

/* Sums in the player's stream, twice, and expects the sum of the communicator's ranks.
 * @param of  [size] ranks of the run, which give their elements. @param by_gpu  no message is sent.
 */
static int sum(player *p, ring_comm *comm, const int *of, bool by_gpu, int round)
{
    ring_call call = RING_CALL_INIT;
    call.stream = p->stream;
    const uint64_t before = harness_messages_sent(comm);
    for (int twice = 0; twice < 2; twice++) {
        for (int i = 0; i < COUNT; i++)
            p->host[i] = element(p->rank, round, i);
        EXPECT_CUDA(cu.copy_to_device_async(p->src, p->host, sizeof p->host, p->stream));
        EXPECT_CUDA(cu.stream_synchronize(p->stream));
        EXPECT_OK(ring_all_reduce((void *)(uintptr_t)p->src, (void *)(uintptr_t)p->dst, COUNT,
                                  RING_INT32, RING_SUM, comm, &call));
        EXPECT_CUDA(cu.copy_to_host_async(p->host, p->dst, sizeof p->host, p->stream));
        EXPECT_CUDA(cu.stream_synchronize(p->stream));
        for (int i = 0; i < COUNT; i++) {
            int32_t want = 0;
            for (int r = 0; r < ring_comm_size(comm); r++)
                want += element(of[r], round, i);
            EXPECT(p->host[i] == want, "rank %d, round %d, element %d: %d, not %d", p->rank, round,
                   i, p->host[i], want);
        }
    }
    EXPECT(!by_gpu || harness_messages_sent(comm) == before, "the host has moved messages");
    return 0;
}

/* Ranks of a split, in the order of their keys, a dup of it, a created and an excluded one. */
static int in_derived(int rank, int ranks, harness_board *board, void *arg)
{
    const int halves[2][2] = {{2, 0}, {3, 1}}, *half = halves[rank % 2], all[] = {0, 1, 2, 3};
    const int three[] = {3, 0, 1}, but_first[] = {1, 2, 3}, first = 0;
    ring_comm *world, *split, *dup, *created = NULL, *rest = NULL;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0 && meet(&p) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &world));
    EXPECT_OK(ring_comm_split(world, rank % 2, -rank, &split));
    EXPECT_OK(ring_comm_dup(split, &dup));
    if (rank != 2)
        EXPECT_OK(ring_comm_create(world, three, 3, 0, &created));
    if (rank != 0)
        EXPECT_OK(ring_comm_exclude(world, &first, 1, &rest));
    for (int round = 0; round < 3; round++) {
        EXPECT(sum(&p, world, all, true, round) == 0, "rank %d, world", rank);
        EXPECT(sum(&p, split, half, true, round) == 0, "rank %d, split", rank);
        EXPECT(sum(&p, dup, half, true, round) == 0, "rank %d, dup", rank);
        if (created != NULL)
            EXPECT(sum(&p, created, three, true, round) == 0, "rank %d, created", rank);
        if (rest != NULL)
            EXPECT(sum(&p, rest, but_first, true, round) == 0, "rank %d, exclude", rank);
    }
    EXPECT_OK(ring_barrier(world, NULL));
    ring_comm_destroy(world); /* its memory stays while the others use it */
    EXPECT(sum(&p, dup, half, true, 5) == 0, "rank %d, dup alone", rank);
    ring_comm_destroy(split);
    ring_comm_destroy(created);
    ring_comm_destroy(rest);
    EXPECT(sum(&p, dup, half, true, 6) == 0, "rank %d, dup alone", rank);
    EXPECT_OK(ring_barrier(dup, NULL));
    ring_comm_destroy(dup);
    return 0;
}

static void test_gpus_run_calls_of_derived_communicators(void **state)
{
    run(4, in_derived);
}

/* None of them allocates memory. When the reserved memory is full, the host drives the calls. */
static int many_derived(int rank, int ranks, harness_board *board, void *arg)
{
    enum { MOST = 20 };
    const int all[] = {0, 1};
    ring_comm *world, *derived[MOST];
    int by_gpus = 0;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0 && meet(&p) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &world));
    EXPECT(meet(&p) == 0, "rank %d", rank);
    const fake_cuda_counts before = counts();
    EXPECT(meet(&p) == 0, "rank %d", rank);
    for (int i = 0; i < MOST; i++) {
        EXPECT_OK(ring_comm_dup(world, &derived[i]));
        const uint64_t messages = harness_messages_sent(derived[i]);
        EXPECT(sum(&p, derived[i], all, false, i) == 0, "rank %d, dup %d", rank, i);
        by_gpus += harness_messages_sent(derived[i]) == messages;
    }
    EXPECT(by_gpus >= 5 && by_gpus < MOST, "GPUs run the calls of %d communicators", by_gpus);
    EXPECT(meet(&p) == 0, "rank %d", rank);
    EXPECT(counts().device_bytes == before.device_bytes && counts().pinned == before.pinned,
           "memory was allocated");
    for (int i = 0; i < MOST; i++)
        ring_comm_destroy(derived[i]);
    EXPECT_OK(ring_barrier(world, NULL)); /* all have departed */
    EXPECT_OK(ring_comm_dup(world, &derived[0]));
    EXPECT(sum(&p, derived[0], all, true, 3) == 0, "rank %d, again", rank);
    ring_comm_destroy(derived[0]);
    EXPECT_OK(ring_barrier(world, NULL));
    ring_comm_destroy(world);
    return 0;
}

static void test_the_host_drives_what_does_not_fit(void **state)
{
    run(2, many_derived);
}

/* Ends the census: libring has made no call that allocates, copies or waits for a stream. */
static int expect_no_waits(void)
{
    static fake_cuda_census_row rows[4096];
    const int count = fake.census_end(rows, 4096);
    const fake_cuda_census sums = fake.census_sum(rows, count, true, 0);
    EXPECT(sums.calls > 0 && sums.allocations + sums.copies + sums.synchronisations == 0,
           "%d allocations, %d copies, %d synchronisations", (int)sums.allocations,
           (int)sums.copies, (int)sums.synchronisations);
    return 0;
}

/* Parts are used again, also where ranks destroy in other orders. */
static int cycles(int rank, int ranks, harness_board *board, void *arg)
{
    const int all[] = {0, 1};
    ring_comm *world, *one, *other;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0 && meet(&p) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &world));
    EXPECT(meet(&p) == 0, "rank %d", rank);
    const fake_cuda_counts before = counts();
    if (rank == 0 || forks)
        fake.census_begin();
    EXPECT(meet(&p) == 0, "rank %d", rank);
    const int most = test_is_long() ? 1000 : 60;
    for (int i = 0; i < most; i += 2) {
        EXPECT_OK(ring_comm_dup(world, &one));
        EXPECT_OK(ring_comm_dup(one, &other));
        if (i == 20) {
            EXPECT(meet(&p) == 0, "rank %d", rank);
            EXPECT((rank > 0 && !forks) || expect_no_waits() == 0, "rank %d", rank);
        }
        if (i % 50 == 0)
            EXPECT(sum(&p, i % 100 == 0 ? one : other, all, true, i) == 0, "rank %d, cycle %d",
                   rank, i);
        ring_comm_destroy((i + rank) % 4 < 2 ? one : other);
        ring_comm_destroy((i + rank) % 4 < 2 ? other : one);
    }
    EXPECT(meet(&p) == 0, "rank %d", rank);
    EXPECT(counts().device_bytes == before.device_bytes && counts().pinned == before.pinned &&
               counts().streams == before.streams && counts().events == before.events,
           "something is left");
    EXPECT(meet(&p) == 0, "rank %d", rank);
    ring_comm_destroy(world);
    return leave(&p);
}

static int once_more(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *world, *dup;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0 && meet(&p) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &world));
    EXPECT_OK(ring_comm_dup(world, &dup));
    ring_comm_destroy(world);
    ring_comm_destroy(dup);
    return leave(&p);
}

static void test_cycles_leave_nothing(void **state)
{
    run(2, cycles);
    if (forks)
        return; /* the memory ends with the processes */
    run(2, once_more);
    const fake_cuda_counts before = counts();
    for (int i = 0; i < 8; i++) /* the last ones may leave a membership's memory for each rank */
        run(2, once_more);
    assert_in_range(counts().device_bytes, 0, before.device_bytes + 2 * 16 * MEBIBYTE);
    assert_int_equal(counts().pinned, before.pinned);
    assert_int_equal(counts().streams, before.streams);
}

/* ---- Admission ---------------------------------------------------------------------------- */

/* Fills the GPU until open_gpu(). @param[out] word  pinned, for which the kernel waits. */
static int fill_gpu(CUstream stream, _Atomic uint32_t **word)
{
    CUdeviceptr there;
    CUmodule module;
    CUfunction meet;
    void *pinned;
    int blocks;
    EXPECT_CUDA(cu.host_alloc(&pinned, 2 * sizeof **word, CU_MEMHOSTALLOC_DEVICEMAP));
    memset(pinned, 0, 2 * sizeof **word);
    *word = pinned;
    EXPECT_CUDA(cu.host_device_pointer(&there, pinned, 0));
    EXPECT_CUDA(cu.module_load(&module, "RINGEMU"));
    EXPECT_CUDA(cu.module_get_function(&meet, module, "sample_meet"));
    EXPECT_CUDA(cu.device_get_attribute(&blocks, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    sample_meet args = {.here = (uint32_t *)(uintptr_t)(there + sizeof **word),
                        .there = (const uint32_t *)(uintptr_t)there,
                        .wanted = 1};
    void *parameters[] = {&args};
    EXPECT_CUDA(cu.launch(meet, (unsigned)blocks, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
    return 0;
}

/* Three communicators, which the ranks call in unlike orders, in a stream each, while the GPUs have
 * no room. */
static int in_unlike_order(int rank, int ranks, harness_board *board, void *arg)
{
    enum { LONG = 1 << 19, COMMS = 3 };
    const int orders[2][COMMS] = {{0, 1, 2}, {2, 1, 0}};
    ring_comm *comms[COMMS];
    CUstream streams[COMMS];
    CUdeviceptr buffers[COMMS];
    uint64_t messages[COMMS];
    _Atomic uint32_t *word;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0 && meet(&p) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &comms[0]));
    for (int i = 1; i < COMMS; i++)
        EXPECT_OK(ring_comm_dup(comms[0], &comms[i]));
    for (int i = 0; i < COMMS; i++) {
        messages[i] = harness_messages_sent(comms[i]);
        EXPECT_CUDA(cu.stream_create(&streams[i], CU_STREAM_NON_BLOCKING, 0));
        EXPECT_CUDA(cu.mem_alloc(&buffers[i], LONG * sizeof(int32_t)));
        EXPECT_CUDA(cu.set_words_async(buffers[i], (unsigned)(1 + i), LONG, streams[i]));
        EXPECT_CUDA(cu.stream_synchronize(streams[i]));
    }
    EXPECT(fill_gpu(p.stream, &word) == 0 && meet(&p) == 0, "rank %d", rank);
    for (int i = 0; i < COMMS; i++) {
        const int at = orders[rank % 2][i];
        void *buffer = (void *)(uintptr_t)buffers[at];
        ring_call call = RING_CALL_INIT;
        call.stream = streams[at];
        EXPECT_OK(ring_all_reduce(buffer, buffer, LONG, RING_INT32, RING_SUM, comms[at], &call));
    }
    EXPECT(meet(&p) == 0, "rank %d", rank);
    usleep(50000);
    EXPECT(meet(&p) == 0, "rank %d", rank);
    atomic_store(word, 1);
    for (int i = 0; i < COMMS; i++) {
        int32_t ends[2];
        EXPECT_CUDA(cu.copy_to_host_async(&ends[0], buffers[i], 4, streams[i]));
        EXPECT_CUDA(cu.copy_to_host_async(&ends[1], buffers[i] + (LONG - 1) * 4, 4, streams[i]));
        EXPECT_CUDA(cu.stream_synchronize(streams[i]));
        EXPECT(ends[0] == ranks * (1 + i) && ends[1] == ends[0], "rank %d: %d, %d", rank, ends[0],
               ends[1]);
    }
    for (int i = 0; i < COMMS; i++)
        EXPECT(harness_messages_sent(comms[i]) == messages[i], "the host has moved messages");
    for (int i = COMMS - 1; i >= 0; i--) {
        EXPECT_OK(ring_barrier(comms[0], NULL));
        ring_comm_destroy(comms[i]);
    }
    return 0;
}

static void test_launches_have_room_beside_others(void **state)
{
    setenv("RING_DEVICE_BLOCKS", "64", 1);
    setenv("RING_TIMEOUT", "20", 1);
    run(2, in_unlike_order);
    unsetenv("RING_TIMEOUT");
    unsetenv("RING_DEVICE_BLOCKS");
}

/* ---- After failures ----------------------------------------------------------------------- */

/* @return what harness bodies return, with the failed communicator replaced by a smaller one. */
static int go_on_without(player *p, ring_comm **comm)
{
    ring_comm *smaller;
    const double since = harness_now();
    while (ring_comm_status(*comm) == RING_OK && harness_is_prompt(since))
        usleep(1000);
    EXPECT(ring_comm_status(*comm) != RING_OK, "rank %d: no failure", p->rank);
    EXPECT_CUDA(cu.stream_synchronize(p->stream));
    EXPECT_OK(ring_comm_shrink(*comm, &smaller));
    ring_comm_destroy(*comm);
    *comm = smaller;
    return 0;
}

/* The last rank is lost, or aborts the communicator, while the others are in a call. */
static int shrunk(int rank, int ranks, harness_board *board, void *arg)
{
    const int all[] = {0, 1, 2};
    ring_comm *comm;
    ring_call call = RING_CALL_INIT;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0 && meet(&p) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT(sum(&p, comm, all, true, 1) == 0, "rank %d", rank);
    EXPECT(meet(&p) == 0, "rank %d", rank);
    call.stream = p.stream;
    if (rank == 2 && forks)
        raise(SIGKILL);
    if (rank == 2)
        EXPECT_OK(ring_comm_abort(comm, "enough"));
    else
        (void)ring_all_reduce((void *)(uintptr_t)p.src, (void *)(uintptr_t)p.dst, COUNT, RING_INT32,
                              RING_SUM, comm, &call);
    EXPECT(go_on_without(&p, &comm) == 0, "rank %d", rank);
    EXPECT(ring_comm_size(comm) == (forks ? 2 : 3), "%d ranks", ring_comm_size(comm));
    EXPECT(sum(&p, comm, all, true, 2) == 0, "rank %d", rank);
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(comm);
    return 0;
}

static void test_gpus_run_calls_after_a_failure(void **state)
{
    const harness_kind kind = forks ? HARNESS_PROCESSES : HARNESS_THREADS;
    assert_int_equal(harness_run(kind, 3, shrunk, NULL, NULL), forks ? 1 : 0);
}

/* ---- Graphs ------------------------------------------------------------------------------- */

/* A graph keeps the part of the communicator whose call it has, also when that was destroyed. */
static int replayed_later(int rank, int ranks, harness_board *board, void *arg)
{
    const int all[] = {0, 1};
    ring_comm *world, *kept, *next[3];
    ring_call call = RING_CALL_INIT;
    CUgraph graph;
    CUgraphExec exec;
    player p;
    EXPECT(sit_down(&p, rank, ranks, board) == 0 && meet(&p) == 0, "rank %d", rank);
    EXPECT_OK(harness_join(rank, ranks, board, &world));
    EXPECT_OK(ring_comm_dup(world, &kept));
    EXPECT(sum(&p, kept, all, true, 1) == 0, "rank %d", rank);
    call.stream = p.stream;
    EXPECT_CUDA(cu.begin_capture(p.stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    EXPECT_OK(ring_all_reduce((void *)(uintptr_t)p.src, (void *)(uintptr_t)p.dst, COUNT, RING_INT32,
                              RING_SUM, kept, &call));
    EXPECT_CUDA(cu.end_capture(p.stream, &graph));
    EXPECT_CUDA(cu.graph_instantiate(&exec, graph, 0));
    EXPECT_CUDA(cu.graph_launch(exec, p.stream));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    EXPECT_OK(ring_barrier(world, NULL));
    ring_comm_destroy(kept);
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(ring_comm_dup(world, &next[i]));
        EXPECT_CUDA(cu.graph_launch(exec, p.stream)); /* does nothing */
        EXPECT(sum(&p, next[i], all, true, i) == 0, "rank %d, dup %d", rank, i);
    }
    for (int i = 0; i < 3; i++)
        ring_comm_destroy(next[i]);
    ring_comm_destroy(world);
    EXPECT_CUDA(cu.graph_launch(exec, p.stream));
    EXPECT_CUDA(cu.stream_synchronize(p.stream));
    EXPECT_CUDA(cu.graph_exec_destroy(exec));
    EXPECT_CUDA(cu.graph_destroy(graph));
    return 0;
}

static void test_graphs_keep_their_parts(void **state)
{
    if (shares)
        skip_because("ranks share a GPU, whose calls are not captured");
    run(2, replayed_later);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_member_takes_16_mib),
        cmocka_unit_test(test_gpus_run_calls_of_derived_communicators),
        cmocka_unit_test(test_the_host_drives_what_does_not_fit),
        cmocka_unit_test(test_cycles_leave_nothing),
        cmocka_unit_test(test_launches_have_room_beside_others),
        cmocka_unit_test(test_gpus_run_calls_after_a_failure),
        cmocka_unit_test(test_graphs_keep_their_parts),
    };
    if (argc != 2)
        return 2;
    shares = strcmp(argv[1], "shared") == 0;
    is_one_gpu = shares || strcmp(argv[1], "mps") == 0;
    forks = !shares && strcmp(argv[1], "own") != 0;
    harness_use(forks ? "shm" : "loop");
    if (!forks) { /* the GPU process is forked, so before there are threads */
        pthread_once(&once, load_driver);
        (void)cu.init(0);
    }
    return cmocka_run_group_tests_name("coll.device_memory", tests, NULL, NULL);
}

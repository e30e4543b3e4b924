/* SPDX-License-Identifier: Apache-2.0
 * Tests calls on GPUs where a program may find itself: on the second GPU of a process, in default
 * streams, with memory that is mapped piece by piece, and without peer access or handles for other
 * processes. Each run has a process of its own.
 * Usage: test_coll_gpu_places TEST [TRANSPORT]; the double's environment is the caller's. */
#include "harness.h"

#include "doubles/cuda/cuda_table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

enum { COUNT = 9000, BYTES = COUNT * 4, ROUNDS = 6, PIECE = 2 << 20, RANKS = 2 };
enum { HOST_COUNT = PIECE / 4 + COUNT };

#define LEGACY ((CUstream)1)
#define PER_THREAD ((CUstream)2)

static const char *transport;
static cuda_table cu;

/* ---- Ranks -------------------------------------------------------------------------------- */

typedef struct player {
    int rank;
    CUcontext context;
    ring_comm *comm;
    CUdeviceptr src, dst;
    int32_t *host; /* [HOST_COUNT], pinned */
} player;

static void load_driver(void)
{
    cu = cuda_functions();
}

static int start_gpu(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, load_driver);
    EXPECT_CUDA(cu.init(0));
    return 0;
}

static int sit_down(player *p, int rank, int device, harness_board *board)
{
    *p = (player){.rank = rank};
    EXPECT(start_gpu() == 0, "no GPU");
    EXPECT_CUDA(cu.primary_retain(&p->context, device));
    EXPECT_CUDA(cu.set_current(p->context));
    EXPECT_CUDA(cu.host_alloc((void **)&p->host, (size_t)HOST_COUNT * 4, 0));
    EXPECT_OK(harness_join(rank, RANKS, board, &p->comm));
    return 0;
}

static int leave(player *p)
{
    EXPECT_OK(ring_barrier(p->comm, NULL));
    ring_comm_destroy(p->comm);
    EXPECT_CUDA(cu.host_free(p->host));
    return 0;
}

static int32_t element(int rank, int round, int i)
{
    return i % 1000 + rank * 7 + round * 3;
}

/* Copies, a call and a copy in the same stream, and then the result is looked at.
 * @param stream  NULL: the call has no stream. */
static int sum_in(const player *p, CUstream stream, int count, int round)
{
    int32_t *host = p->host;
    ring_call call = RING_CALL_INIT;
    call.stream = stream;
    for (int i = 0; i < count; i++)
        host[i] = element(p->rank, round, i);
    EXPECT_CUDA(cu.copy_async(p->src, (uintptr_t)host, (size_t)count * 4, stream));
    EXPECT_OK(ring_all_reduce((void *)(uintptr_t)p->src, (void *)(uintptr_t)p->dst, (size_t)count,
                              RING_INT32, RING_SUM, p->comm, &call));
    EXPECT_CUDA(cu.copy_async((uintptr_t)host, p->dst, (size_t)count * 4, stream));
    EXPECT_CUDA(cu.stream_synchronize(stream));
    for (int i = 0; i < count; i++)
        EXPECT(host[i] == element(0, round, i) + element(1, round, i),
               "wrong values: rank %d, round %d, element %d: %d", p->rank, round, i, host[i]);
    EXPECT_OK(ring_barrier(p->comm, NULL));
    return 0;
}

static bool has_threads(void)
{
    return harness_kind_of(transport) == HARNESS_THREADS;
}

static void run(harness_body body)
{
    assert_int_equal(harness_run_apart(transport, RANKS, body, NULL, start_gpu), 0);
}

/* ---- Default streams ---------------------------------------------------------------------- */

/* The communicator's GPU is the process's second one. Ranks of a process that share a GPU share its
 * legacy stream, too, in which one would stop the other, so they have two. */
static int in_default_streams(int rank, int ranks, harness_board *board, void *arg)
{
    const CUstream streams[] = {NULL, LEGACY, PER_THREAD};
    player p;
    EXPECT(sit_down(&p, rank, has_threads() ? 1 - rank : 1, board) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.mem_alloc(&p.src, BYTES));
    EXPECT_CUDA(cu.mem_alloc(&p.dst, BYTES));
    for (int round = 0; round < ROUNDS; round++) {
        const CUstream stream = streams[round % 3];
        EXPECT(sum_in(&p, stream, COUNT - 16 * round, round) == 0, "rank %d, stream %p", rank,
               (void *)stream);
    }
    return leave(&p);
}

static void default_streams(void **state)
{
    run(in_default_streams);
}

/* ---- Pieces ------------------------------------------------------------------------------- */

static int map_pieces(CUdeviceptr *out, int count)
{
    const CUmemAllocationProp properties = {.type = 1, .location = {.type = 1, .id = 0}};
    const CUmemAccessDesc access = {.location = {.type = 1, .id = 0}, .flags = 3};
    EXPECT_CUDA(cu.reserve(out, (size_t)count * PIECE, 0, 0, 0));
    for (int i = 0; i < count; i++) {
        CUmemGenericAllocationHandle piece;
        EXPECT_CUDA(cu.create(&piece, PIECE, &properties, 0));
        EXPECT_CUDA(cu.map(*out + (size_t)i * PIECE, PIECE, 0, piece, 0));
        EXPECT_CUDA(cu.release(piece));
    }
    EXPECT_CUDA(cu.set_access(*out, (size_t)count * PIECE, &access, 1));
    return 0;
}

/* The buffers begin in a piece and end in the next or the third one. */
static int across_pieces(int rank, int ranks, harness_board *board, void *arg)
{
    const int counts[] = {COUNT, HOST_COUNT};
    CUdeviceptr from, to;
    CUstream stream;
    player p;
    EXPECT(sit_down(&p, rank, 0, board) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT(map_pieces(&from, 3) == 0 && map_pieces(&to, 3) == 0, "rank %d", rank);
    p.src = from + PIECE - BYTES / 2;
    p.dst = to + PIECE - BYTES / 4;
    for (int i = 0; i < 4; i++)
        EXPECT(sum_in(&p, i % 2 == 0 ? NULL : stream, counts[i / 2], i) == 0, "rank %d, call %d",
               rank, i);
    EXPECT(leave(&p) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.unmap(from, (size_t)3 * PIECE));
    EXPECT_CUDA(cu.unmap(to, (size_t)3 * PIECE));
    return 0;
}

static void pieces(void **state)
{
    run(across_pieces);
}

/* ---- A GPU for each rank ------------------------------------------------------------------ */

/* Neither peers nor other processes can be reached, which the environment of the double says. GPUs
 * run the calls through memory of the host. */
static int apart(int rank, int ranks, harness_board *board, void *arg)
{
    CUstream stream;
    player p;
    EXPECT(sit_down(&p, rank, rank, board) == 0, "rank %d", rank);
    EXPECT_CUDA(cu.stream_create(&stream, CU_STREAM_NON_BLOCKING, 0));
    EXPECT_CUDA(cu.mem_alloc(&p.src, BYTES));
    EXPECT_CUDA(cu.mem_alloc(&p.dst, BYTES));
    for (int round = 0; round < ROUNDS; round++)
        EXPECT(sum_in(&p, round % 2 == 0 ? NULL : stream, COUNT - 16 * round, round) == 0,
               "rank %d", rank);
    return leave(&p);
}

static void gpus_apart(void **state)
{
    run(apart);
}

/* Kernels that touch a peer's memory fail, which ends all GPUs of the double. The start finds that
 * out, and the rank whose kernel was first says what to do. */
static int with_liars(int rank, int ranks, harness_board *board, void *arg)
{
    CUcontext context;
    ring_comm *comm;
    EXPECT(start_gpu() == 0, "no GPU");
    EXPECT_CUDA(cu.primary_retain(&context, rank));
    EXPECT_CUDA(cu.set_current(context));
    const double since = harness_now();
    EXPECT(harness_join(rank, ranks, board, &comm) != RING_OK, "the start has not failed");
    EXPECT(harness_says("CUDA error 700"), "%s", ring_last_error(NULL));
    atomic_fetch_add(&board->counters[0], harness_says("RING_P2P=0"));
    EXPECT(harness_is_prompt(since), "the start does not end");
    atomic_fetch_add(&board->counters[1], 1);
    EXPECT(harness_await(board, 1, ranks), "a rank is late");
    EXPECT(atomic_load(&board->counters[0]) > 0, "nobody says what to do");
    return 0;
}

static void liars(void **state)
{
    if (system("grep -qw ospke /proc/cpuinfo") != 0)
        skip();
    run(with_liars);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(default_streams),
        cmocka_unit_test(pieces),
        cmocka_unit_test(gpus_apart),
        cmocka_unit_test(liars),
    };
    if (argc < 2 || argc > 3)
        return 2;
    transport = argc == 3 ? argv[2] : "loop";
    harness_use(transport);
    setenv("FAKE_CUDA_DEADLINE", "10", 0);
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (strcmp(tests[i].name, argv[1]) == 0) {
            const struct CMUnitTest chosen[] = {tests[i]};
            return cmocka_run_group_tests_name("coll.gpu_places", chosen, NULL, NULL);
        }
    return 2;
}

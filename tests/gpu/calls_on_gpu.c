/* SPDX-License-Identifier: Apache-2.0
 *
 * Calls of ranks on memory and streams of GPUs. Every value is checked, in outputs that were
 * poisoned. SIGUSR1 prints where each rank is. Usage: gpu_calls MODE RANKS KIND NUMBER [DEVICES]
 *
 *     delays  NUMBER calls on two streams and communicators, with random delays of host and streams
 *     plain   NUMBER calls without a stream, right after copies that may end later
 *     frees   NUMBER calls as delays, and memory is freed and allocated in between
 *     aborts  NUMBER communicators end by an abort or a deadline, with a stream at a call
 *     graphs  a captured call, replayed NUMBER times, or refused
 *
 * KIND is threads or processes. Ranks use DEVICES in turn (1); 77: there are fewer. */
#include "draw.h"
#include "gpu_test.h"
#include "harness.h"
#include "places.h"

#include <unistd.h>

enum { LANES = 2, BATCH = 32, MOST = 3000, VALUES = 1000, PLAIN = 10000, SOON_CALLS = 20 };

typedef struct options {
    int number, devices;
    const char *mode;
} options;

static cuda_table cu;

/* ---- A call, and what is asked around it ----------------------------------------------------- */

/* One communicator, its stream, and memory for a call. */
typedef struct lane {
    ring_comm *comm;
    CUstream stream;
    int32_t *src, *dst; /* of the device, [MOST] */
    int32_t *seen;      /* pinned, [BATCH * MOST]; several ranks have less under way, each */
    size_t counts[BATCH];
    int32_t wants[BATCH];
    int rank, calls;
} lane;

static int lane_open(lane *l, int rank, ring_comm *comm)
{
    void *pinned;
    *l = (lane){.rank = rank, .comm = comm, .stream = gpu_stream_new(&cu)};
    l->src = gpu_new(&cu, MOST * sizeof *l->src);
    l->dst = gpu_new(&cu, MOST * sizeof *l->dst);
    OK(cu.host_alloc(&pinned, BATCH * MOST * sizeof *l->seen, CU_MEMHOSTALLOC_PORTABLE));
    l->seen = pinned;
    return 0;
}

static void lane_close(lane *l)
{
    ring_comm_destroy(l->comm);
    OK(cu.stream_synchronize(l->stream));
    OK(cu.stream_destroy(l->stream));
    gpu_free(&cu, l->src);
    gpu_free(&cu, l->dst);
    OK(cu.host_free(l->seen));
}

static int32_t value_of(int rank, int call)
{
    return (rank + 1) * (call % VALUES + 1);
}

static int32_t sum_of(int ranks, int call)
{
    return ranks * (ranks + 1) / 2 * (call % VALUES + 1);
}

/* Poison, the call, and a copy of its result to @p seen. */
static ring_status ask(const lane *l, size_t count, int32_t *seen)
{
    ring_call call = RING_CALL_INIT;
    call.stream = l->stream;
    OK(cu.set_bytes_async((uintptr_t)l->dst, 0xa5, count * sizeof *l->dst, l->stream));
    const ring_status status = ring_all_reduce(l->src, l->dst, count, RING_INT32, RING_SUM, l->comm,
                                               &call);
    OK(cu.copy_to_host_async(seen, (uintptr_t)l->dst, count * sizeof *seen, l->stream));
    return status;
}

static int expect_all(const int32_t *seen, size_t count, int32_t want, int call)
{
    for (size_t i = 0; i < count; i++)
        EXPECT(seen[i] == want, "element %zu of %zu in call %d: %d, not %d", i, count, call,
               (int)seen[i], (int)want);
    return 0;
}

/* ---- Many calls ------------------------------------------------------------------------------ */

static void sleep_there(void *us)
{
    usleep((unsigned)(uintptr_t)us);
}

/* Of the host or of a stream, now and then; each rank draws its own. */
static void delay(const lane *l, uint64_t *own)
{
    const unsigned us = test_draw(own, 100);
    const unsigned which = test_draw(own, 16);
    if (which == 0)
        usleep(us);
    if (which == 1)
        OK(cu.launch_host(l->stream, sleep_there, (void *)(uintptr_t)us));
}

static int settle(lane *l, int last)
{
    places_at(l->rank, "cuStreamSynchronize", last);
    OK(cu.stream_synchronize(l->stream));
    for (int k = 0; k < l->calls; k++)
        if (expect_all(l->seen + (size_t)k * MOST, l->counts[k], l->wants[k], last) != 0)
            return 1;
    l->calls = 0;
    return 0;
}

/* Frees and allocates where no stream is at a call: a free waits for the streams of all ranks of
 * the process. */
static int renew(const lane *l, void **spare)
{
    places_at(l->rank, "a barrier before a free", 0);
    EXPECT_OK(ring_barrier(l->comm, NULL));
    places_at(l->rank, "cuMemFree and cuMemAlloc", 0);
    gpu_free(&cu, *spare);
    *spare = gpu_new(&cu, MOST);
    EXPECT_OK(ring_barrier(l->comm, NULL));
    return 0;
}

/* All ranks draw the same counts and lanes; the delays are their own. */
static int delays(int rank, int ranks, lane *lanes, int number, bool frees)
{
    uint64_t shared = test_seed(), own = test_seed() + (uint64_t)rank + 1;
    void *spare = gpu_new(&cu, MOST);
    for (int i = 0; i < number; i++) {
        lane *l = &lanes[test_draw(&shared, LANES)];
        const size_t count = 1 + test_draw(&shared, test_draw(&shared, 8) == 0 ? MOST : 64);
        const int k = l->calls++;
        l->counts[k] = count;
        l->wants[k] = sum_of(ranks, i);
        places_at(rank, "a call on a stream", i);
        delay(l, &own);
        OK(cu.set_words_async((uintptr_t)l->src, (unsigned)value_of(rank, i), count, l->stream));
        EXPECT_OK(ask(l, count, l->seen + (size_t)k * MOST));
        if (l->calls * ranks >= 2 * BATCH && settle(l, i) != 0)
            return 1;
        if (frees && i % BATCH == BATCH - 1 &&
            (settle(&lanes[0], i) || settle(&lanes[1], i) || renew(&lanes[0], &spare)))
            return 1;
    }
    if (settle(&lanes[0], number) || settle(&lanes[1], number))
        return 1;
    EXPECT_OK(ring_barrier(lanes[0].comm, NULL));
    gpu_free(&cu, spare);
    return 0;
}

/* A copy from pageable memory and a memset may return before they end: the call must wait for them.
 */
static int plain(int rank, int ranks, const lane *l, int number)
{
    uint64_t shared = test_seed();
    int32_t *in = malloc(PLAIN * sizeof *in), *out = malloc(PLAIN * sizeof *out);
    int32_t *src = gpu_new(&cu, PLAIN * sizeof *src), *dst = gpu_new(&cu, PLAIN * sizeof *dst);
    for (int i = 0; i < number; i++) {
        const size_t count = 1 + test_draw(&shared, PLAIN);
        for (size_t k = 0; k < count; k++)
            in[k] = value_of(rank, i);
        places_at(rank, "a call without a stream", i);
        OK(cu.copy((uintptr_t)src, (uintptr_t)in, count * sizeof *in));
        OK(cu.set_bytes((uintptr_t)dst, 0xa5, count * sizeof *dst));
        EXPECT_OK(ring_all_reduce(src, dst, count, RING_INT32, RING_SUM, l->comm, NULL));
        OK(cu.copy((uintptr_t)out, (uintptr_t)dst, count * sizeof *out));
        if (expect_all(out, count, sum_of(ranks, i), i) != 0)
            return 1;
    }
    EXPECT_OK(ring_barrier(l->comm, NULL));
    gpu_free(&cu, src);
    gpu_free(&cu, dst);
    free(in);
    free(out);
    return 0;
}

/* ---- Communicators that end ------------------------------------------------------------------ */

/* Rank 0's stream is at a call that no other rank makes. */
static int end_one(int rank, const lane *l, int number, bool aborts)
{
    ring_comm *other;
    ring_status status = RING_OK;
    ring_call call = RING_CALL_INIT;
    places_at(rank, "ring_comm_dup", number);
    EXPECT_OK(ring_comm_dup(l->comm, &other));
    call.stream = l->stream;
    call.timeout = aborts ? 0 : 0.2;
    if (rank == 0)
        EXPECT_OK(ring_all_reduce(l->src, l->dst, MOST, RING_INT32, RING_SUM, other, &call));
    EXPECT_OK(ring_barrier(l->comm, NULL));
    if (rank == 1 && aborts)
        EXPECT_OK(ring_comm_abort(other, "the test ends it"));
    places_at(rank, aborts ? "an abort" : "a deadline", number);
    for (const double since = harness_now(); status == RING_OK && harness_is_prompt(since);)
        status = ring_comm_status(other);
    EXPECT(status == (aborts ? RING_ERR_ABORTED : RING_ERR_TIMEOUT), "%s: %s",
           ring_status_string(status), ring_last_error(other));
    OK(cu.stream_synchronize(l->stream));
    ring_comm_destroy(other);
    return 0;
}

/* The other communicators go on. */
static int aborts(int rank, int ranks, lane *lanes, int number)
{
    for (int i = 0; i < number; i++)
        if (end_one(rank, &lanes[0], i, i % 2 == 0) ||
            delays(rank, ranks, lanes, SOON_CALLS, false))
            return 1;
    return 0;
}

/* ---- Graphs -----------------------------------------------------------------------------------
 */

/* Where threads share a GPU, or the host drives calls, the call must be refused in a capture. */
static int graphs(int rank, int ranks, lane *lanes, int number)
{
    const lane *l = &lanes[0];
    CUgraph graph;
    CUgraphExec exec;
    OK(cu.begin_capture(l->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    const ring_status status = ask(l, MOST, l->seen);
    OK(cu.end_capture(l->stream, &graph));
    if (status == RING_ERR_UNSUPPORTED) {
        printf("rank %d: refused: %s\n", rank, ring_last_error(NULL));
        OK(cu.graph_destroy(graph));
        EXPECT_OK(ask(l, MOST, l->seen));
        OK(cu.stream_synchronize(l->stream));
        return 0;
    }
    EXPECT_OK(status);
    OK(cu.graph_instantiate(&exec, graph, 0));
    for (int i = 0; i < number; i++) {
        places_at(rank, "a replay", i);
        OK(cu.set_words_async((uintptr_t)l->src, (unsigned)value_of(rank, i), MOST, l->stream));
        OK(cu.graph_launch(exec, l->stream));
        OK(cu.stream_synchronize(l->stream));
        EXPECT(expect_all(l->seen, MOST, sum_of(ranks, i), i) == 0, "replay %d", i);
    }
    OK(cu.graph_exec_destroy(exec));
    OK(cu.graph_destroy(graph));
    return 0;
}

/* ---- Ranks ------------------------------------------------------------------------------------
 */

static int run_mode(int rank, int ranks, lane *lanes, const options *o)
{
    if (strcmp(o->mode, "delays") == 0)
        return delays(rank, ranks, lanes, o->number, false);
    if (strcmp(o->mode, "frees") == 0)
        return delays(rank, ranks, lanes, o->number, true);
    if (strcmp(o->mode, "plain") == 0)
        return plain(rank, ranks, &lanes[0], o->number);
    if (strcmp(o->mode, "aborts") == 0)
        return aborts(rank, ranks, lanes, o->number);
    if (strcmp(o->mode, "graphs") == 0)
        return graphs(rank, ranks, lanes, o->number);
    EXPECT(false, "there is no mode %s", o->mode);
}

static int run_rank(int rank, int ranks, harness_board *board, void *arg)
{
    const options *o = arg;
    ring_comm *comm[LANES];
    lane lanes[LANES];
    gpu_use(&cu, rank % o->devices);
    places_watch(&cu);
    places_at(rank, "ring_comm_init", 0);
    EXPECT_OK(harness_join(rank, ranks, board, &comm[0]));
    for (int i = 0; i < LANES; i++) {
        if (i > 0)
            EXPECT_OK(ring_comm_dup(comm[0], &comm[i]));
        EXPECT(lane_open(&lanes[i], rank, comm[i]) == 0, "memory");
        places_stream(rank, i, lanes[i].stream);
    }
    const int failed = run_mode(rank, ranks, lanes, o);
    places_at(rank, "the end", 0);
    if (failed != 0)
        return failed;
    for (int i = 0; i < LANES; i++) {
        places_stream(rank, i, NULL);
        lane_close(&lanes[i]);
    }
    return 0;
}

/* Asked in a process of its own: no process that has started CUDA can be forked. */
static int count_devices(int rank, int ranks, harness_board *board, void *arg)
{
    int *seen = (int *)(void *)board->data;
    OK(cu.init(0));
    OK(cu.device_count(seen));
    return 0;
}

static bool has_devices(int wanted)
{
    harness_board *board;
    if (harness_run(HARNESS_PROCESSES, 1, count_devices, NULL, &board) != 0)
        return false;
    const bool enough = *(const int *)(const void *)board->data >= wanted;
    harness_board_free(board);
    return enough;
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 6)
        return 2;
    options o = {.mode = argv[1],
                 .number = atoi(argv[4]),
                 .devices = argc == 6 ? atoi(argv[5]) : 1};
    const bool threads = strcmp(argv[3], "threads") == 0;
    cu = cuda_functions();
    test_seed();
    if (o.devices != 1 && !has_devices(o.devices)) {
        printf("SKIPPED: there are not %d GPUs here\n", o.devices);
        return 77;
    }
    return harness_run(threads ? HARNESS_THREADS : HARNESS_PROCESSES, atoi(argv[2]), run_rank, &o,
                       NULL) != 0;
}

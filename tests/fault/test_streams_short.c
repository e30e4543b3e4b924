/* SPDX-License-Identifier: Apache-2.0
 * A rank has no memory for a call on a stream: each allocation of the caller or of the library's
 * threads fails once. No stream stays stopped, and calls that succeed have right values.
 * Usage: test_fault_streams_short TRANSPORT */
#include "harness.h"

#include "far.h"
#include "short_memory.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit_test.h"

enum { RANKS = 2, COUNT = 5000, NEVER = -1 };

/* ---- Memory --------------------------------------------------------------------------------- */

static _Thread_local long until_failure = NEVER; /* allocations of this thread that still succeed */
static _Thread_local bool is_tests;
static _Atomic long others = NEVER; /* those of threads that are not the test's */

static bool may_allocate(void)
{
    bool fails;
    if (is_tests)
        fails = until_failure != NEVER && until_failure-- == 0;
    else
        fails = atomic_load(&others) != NEVER && atomic_fetch_sub(&others, 1) == 0;
    if (fails)
        errno = ENOMEM;
    return !fails; /* and the next ones succeed: it is NEVER now */
}

/* ---- Calls ---------------------------------------------------------------------------------- */

typedef struct place {
    far_stream *stream;
    int32_t *memory, *in, *out;
} place;

static ring_status call_once(const place *p, ring_comm *comm)
{
    ring_call call = RING_CALL_INIT;
    call.stream = p->stream;
    return ring_all_reduce(p->memory, p->memory, COUNT, RING_INT32, RING_SUM, comm, &call);
}

static ring_status call_in_a_group(const place *p, ring_comm *comm)
{
    ring_call call = RING_CALL_INIT;
    call.stream = p->stream;
    if (ring_group_start() != RING_OK)
        return RING_ERR_MEMORY;
    (void)ring_barrier(comm, &call);
    (void)call_once(p, comm);
    return ring_group_end();
}

/* Enqueues the rank's work on its stream. @param[in,out] nth  allocation that fails, NEVER: none;
 * then NEVER if it has. @param[out] graph  of a captured call. @return its status. */
static ring_status ask(const place *p, ring_comm *comm, int kind, long *nth, far_graph **graph)
{
    *graph = NULL;
    if (kind < 2)
        far_stream_write(p->stream, p->memory, p->in, COUNT * sizeof *p->in);
    else
        far_capture_begin(p->stream);
    until_failure = *nth;
    const ring_status status = kind % 2 == 0 ? call_once(p, comm) : call_in_a_group(p, comm);
    *nth = until_failure;
    until_failure = NEVER;
    if (kind >= 2)
        *graph = far_capture_end(p->stream);
    else
        far_stream_read(p->stream, p->out, p->memory, COUNT * sizeof *p->out);
    return status;
}

static void replay(const place *p, far_graph *graph, long nth)
{
    far_stream_write(p->stream, p->memory, p->in, COUNT * sizeof *p->in);
    atomic_store(&others, nth);
    far_graph_replay(graph, p->stream);
    far_stream_read(p->stream, p->out, p->memory, COUNT * sizeof *p->out);
}

/* Rank 0 sends nothing on the parent while an allocation of rank 1's threads may fail: one for that
 * would be the one that fails. Counter 0 of the board: runs in which none fails any more. */
static int end_shortage(int rank, harness_board *board, int run)
{
    if (rank == 1) {
        atomic_store(&others, NEVER);
        atomic_fetch_add(&board->counters[0], 1);
    }
    EXPECT(harness_await(board, 0, run), "rank 1 is late");
    return 0;
}

/* @param[in,out] nth  NEVER once nothing has failed. */
static int run_short(int rank, ring_comm *parent, const place *p, int kind, bool in_thread,
                     harness_board *board, long *nth)
{
    ring_comm *comm;
    far_graph *graph;
    EXPECT_OK(ring_comm_dup(parent, &comm));
    p->out[COUNT - 1] = -1;
    const bool short_here = rank == 1 && !in_thread;
    long left = short_here ? *nth : NEVER;
    ring_status status = ask(p, comm, kind, &left, &graph);
    int32_t ran_short = short_here && left == NEVER, bad = status != RING_OK;
    EXPECT(status == RING_OK || status == RING_ERR_MEMORY || status == RING_ERR_MISMATCH,
           "allocation %ld of kind %d: %s", *nth, kind, ring_last_error(NULL));
    EXPECT_OK(ring_all_reduce(&bad, &bad, 1, RING_INT32, RING_MAX, parent, NULL));
    if (graph != NULL && bad == 0)
        replay(p, graph, rank == 1 && in_thread ? *nth : NEVER);
    far_stream_synchronize(p->stream);
    if (rank == 1 && in_thread)
        ran_short = atomic_load(&others) < 0;
    if (in_thread)
        EXPECT(end_shortage(rank, board, (int)*nth + 1) == 0, "run %ld", *nth);
    EXPECT_OK(ring_barrier(parent, NULL));
    status = ring_comm_status(comm);
    EXPECT(status != RING_OK || bad != 0 || p->out[COUNT - 1] == 1, "allocation %ld of kind %d: %d",
           *nth, kind, (int)p->out[COUNT - 1]);
    if (graph != NULL)
        far_graph_destroy(graph);
    ring_comm_destroy(comm);
    EXPECT_OK(ring_all_reduce(&ran_short, &ran_short, 1, RING_INT32, RING_MAX, parent, NULL));
    *nth = ran_short ? *nth + 1 : NEVER;
    return 0;
}

static int each_allocation(int rank, int ranks, harness_board *board, void *arg)
{
    const int kind = *(const int *)arg % 4;
    const bool in_thread = *(const int *)arg >= 4; /* of a replay */
    const size_t bytes = COUNT * sizeof(int32_t);
    ring_comm *comm;
    long nth = 0, most = 0;
    is_tests = true;
    EXPECT_OK(harness_join(rank, RANKS, board, &comm));
    const place p = {far_stream_create(), far_alloc_unknown(bytes, NULL), calloc(1, bytes),
                     calloc(1, bytes)};
    p.in[COUNT - 1] = rank;
    for (; nth != NEVER; most = nth > most ? nth : most)
        EXPECT(run_short(rank, comm, &p, kind, in_thread, board, &nth) == 0, "kind %d", kind);
    EXPECT(most > 2, "%ld allocations of kind %d", most, kind);
    ring_comm_destroy(comm);
    far_stream_destroy(p.stream);
    far_free_unknown(p.memory);
    free(p.in);
    free(p.out);
    return 0;
}

static void test_a_stream_goes_on_without_memory(void **state)
{
    for (int i = 0; i < 6; i++) {
        int kind = i < 4 ? i : i + 2; /* 6, 7: graphs whose replays run short */
        assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, each_allocation, &kind, NULL), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_stream_goes_on_without_memory)};
    if (argc != 2)
        return 2;
    is_tests = true;
    setenv("RING_TRANSPORT", argv[1], 1);
    setenv("RING_TIMEOUT", "60", 1);
    return cmocka_run_group_tests_name("fault.streams_short", tests, NULL, NULL);
}

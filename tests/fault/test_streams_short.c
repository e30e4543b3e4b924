/* SPDX-License-Identifier: Apache-2.0
 * A rank has no memory for a call on a stream: each allocation of the caller fails once. No stream
 * stays stopped, and calls that succeed have right values. Usage: test_fault_streams_short
 * TRANSPORT */
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

static bool may_allocate(void)
{
    const bool fails = until_failure != NEVER && until_failure-- == 0;
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

/* Enqueues the rank's work on its stream. @param[in,out] nth  the allocation that fails, NEVER:
 * none; then NEVER if it has failed. @return the status of the call. */
static ring_status ask(const place *p, ring_comm *comm, bool in_group, long *nth)
{
    far_stream_write(p->stream, p->memory, p->in, COUNT * sizeof *p->in);
    until_failure = *nth;
    const ring_status status = in_group ? call_in_a_group(p, comm) : call_once(p, comm);
    *nth = until_failure;
    until_failure = NEVER;
    far_stream_read(p->stream, p->out, p->memory, COUNT * sizeof *p->out);
    return status;
}

/* @param[in,out] nth  NEVER once nothing has failed. */
static int run_short(int rank, ring_comm *parent, const place *p, bool in_group, long *nth)
{
    ring_comm *comm;
    EXPECT_OK(ring_comm_dup(parent, &comm));
    p->out[COUNT - 1] = -1;
    long left = rank == 1 ? *nth : NEVER;
    ring_status status = ask(p, comm, in_group, &left);
    int32_t ran_short = rank == 1 && left == NEVER, bad = status != RING_OK;
    EXPECT(status == RING_OK || status == RING_ERR_MEMORY || status == RING_ERR_MISMATCH,
           "allocation %ld, group %d: %s", *nth, in_group, ring_last_error(NULL));
    EXPECT_OK(ring_all_reduce(&bad, &bad, 1, RING_INT32, RING_MAX, parent, NULL));
    far_stream_synchronize(p->stream);
    EXPECT_OK(ring_barrier(parent, NULL));
    status = ring_comm_status(comm);
    EXPECT(status != RING_OK || bad != 0 || p->out[COUNT - 1] == 1, "allocation %ld, group %d: %d",
           *nth, in_group, (int)p->out[COUNT - 1]);
    ring_comm_destroy(comm);
    EXPECT_OK(ring_all_reduce(&ran_short, &ran_short, 1, RING_INT32, RING_MAX, parent, NULL));
    *nth = ran_short ? *nth + 1 : NEVER;
    return 0;
}

static int each_allocation(int rank, int ranks, harness_board *board, void *arg)
{
    const bool in_group = *(const bool *)arg;
    const size_t bytes = COUNT * sizeof(int32_t);
    ring_comm *comm;
    long nth = 0, most = 0;
    EXPECT_OK(harness_join(rank, RANKS, board, &comm));
    const place p = {far_stream_create(), far_alloc_unknown(bytes, NULL), calloc(1, bytes),
                     calloc(1, bytes)};
    p.in[COUNT - 1] = rank;
    for (; nth != NEVER; most = nth > most ? nth : most)
        EXPECT(run_short(rank, comm, &p, in_group, &nth) == 0, "group %d", in_group);
    EXPECT(most > 2, "%ld allocations, group %d", most, in_group);
    ring_comm_destroy(comm);
    far_stream_destroy(p.stream);
    far_free_unknown(p.memory);
    free(p.in);
    free(p.out);
    return 0;
}

static void test_a_stream_goes_on_without_memory(void **state)
{
    for (int i = 0; i < 2; i++) {
        bool in_group = i == 1;
        assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, each_allocation, &in_group, NULL),
                         0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_stream_goes_on_without_memory)};
    if (argc != 2)
        return 2;
    setenv("RING_TRANSPORT", argv[1], 1);
    setenv("RING_TIMEOUT", "60", 1);
    return cmocka_run_group_tests_name("fault.streams_short", tests, NULL, NULL);
}

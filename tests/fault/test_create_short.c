/* SPDX-License-Identifier: Apache-2.0
 *
 * Some ranks make a communicator by themselves, and one of them has no memory: each allocation of
 * its call fails once, all members get an error, and the parent stays usable. Usage:
 * test_fault_create_short TRANSPORT */
#include "harness.h"
#include "short_memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unit_test.h"

/* Calls after which the messages to all ranks have as much room as they will ever have. */
enum { RANKS = 3, WARM_UPS = 80, PAUSE_US = 5000, NEVER = -1 };

/* ---- Memory of the calling thread --------------------------------------------------------------
 */

static _Thread_local long until_failure = NEVER; /* allocations that still succeed */
static _Thread_local bool failed;                /* one did, in this call          */

static bool may_allocate(void)
{
    if (until_failure == NEVER || until_failure-- > 0)
        return true;
    failed = true;
    errno = ENOMEM;
    return false; /* and the next ones succeed: it is NEVER now */
}

/* The others act on each message that the rank sends after the failure before it sends the next:
 * the rank must not say first that it has come and then that it has no memory. */
IN_PLACE_OF_LIBC ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    const ssize_t sent = syscall(SYS_sendto, fd, bytes, count, flags, NULL, 0);
    if (failed)
        usleep(PAUSE_US);
    return sent;
}

/* ---- Calls -------------------------------------------------------------------------------------
 */

static ring_status create(ring_comm *comm, ring_comm **out)
{
    static const int list[RANKS] = {2, 0, 1};
    return ring_comm_create(comm, list, RANKS, 1, out);
}

/* @param late  the victim comes last. @param[out] ran_short  it did. */
static int create_short(ring_comm *comm, bool victim, bool late, long nth, int32_t *ran_short)
{
    ring_comm *made;
    int32_t statuses[RANKS];
    if (victim && late)
        usleep(PAUSE_US);
    until_failure = victim ? nth : NEVER;
    const int32_t mine = (int32_t)create(comm, &made);
    *ran_short = victim && until_failure == NEVER;
    until_failure = NEVER;
    failed = false;
    EXPECT((mine == RING_OK) == (made != NULL), "status %d", (int)mine);
    ring_comm_destroy(made);
    EXPECT_OK(ring_all_gather(&mine, statuses, 1, RING_INT32, comm, NULL));
    for (int r = 0; r < RANKS; r++)
        EXPECT((mine == RING_OK || mine == RING_ERR_MEMORY) && statuses[r] == mine,
               "allocation %ld: rank %d has %d, this one %d: %s", nth, r, (int)statuses[r],
               (int)mine, ring_last_error(NULL));
    EXPECT_OK(ring_all_reduce(ran_short, ran_short, 1, RING_INT32, RING_MAX, comm, NULL));
    return 0;
}

static int each_allocation(int rank, int ranks, harness_board *board, void *arg)
{
    const int victim = *(const int *)arg;
    ring_comm *comm, *made;
    int32_t ran_short = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int i = 0; i < WARM_UPS; i++) {
        EXPECT_OK(create(comm, &made));
        ring_comm_destroy(made);
    }
    long nth = 0;
    for (; ran_short != 0; nth++)
        for (int late = 0; late < 2; late++)
            EXPECT(create_short(comm, rank == victim, late, nth, &ran_short) == 0, "rank %d", rank);
    EXPECT(nth > 5, "%ld allocations", nth);
    EXPECT_OK(create(comm, &made));
    ring_comm_destroy(made);
    ring_comm_destroy(comm);
    return 0;
}

static void test_one_without_memory_is_told_of(void **state)
{
    for (int victim = 0; victim < 2; victim++)
        assert_int_equal(harness_run(HARNESS_PROCESSES, RANKS, each_allocation, &victim, NULL), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_without_memory_is_told_of)};
    if (argc != 2)
        return 2;
    setenv("RING_TRANSPORT", argv[1], 1);
    setenv("RING_TIMEOUT", "60", 1);
    return cmocka_run_group_tests_name("fault.create_short", tests, NULL, NULL);
}

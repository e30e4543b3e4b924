/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank dies or stops at a random moment of a collective: every other rank returns an error
 * that names it in time, and nothing is left behind. RING_TEST_KILLS sets the number of kills
 * (10). Usage: test_fault_kill TRANSPORT */
#include "harness.h"

#include <dirent.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 4, COUNT = 60000 };

typedef struct kill_plan {
    int victim, signal;
    unsigned delay_us;
    double limit; /* seconds until all others must know */
} kill_plan;

static const char *transport_name;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* When the victim was hit, by CLOCK_MONOTONIC, which all processes share. */
static _Atomic double *hit_at(harness_board *board)
{
    return (_Atomic double *)(void *)board->data;
}

static void hit_victim(harness_board *board, void *arg)
{
    const kill_plan *plan = arg;
    while (atomic_load(&board->counters[0]) < RANKS)
        usleep(100);
    usleep(plan->delay_us);
    atomic_store(hit_at(board), now());
    kill(board->pids[plan->victim], plan->signal);
    /* A stopped rank is ended once the others have reported, so that the run can end. */
    const double end = now() + 10;
    while (plan->signal == SIGSTOP && atomic_load(&board->counters[1]) < RANKS - 1 && now() < end)
        usleep(1000);
    kill(board->pids[plan->victim], SIGKILL);
}

static int check_error(ring_comm *comm, ring_status status, const kill_plan *plan,
                       harness_board *board)
{
    char name[32];
    const double late = now() - atomic_load(hit_at(board));
    snprintf(name, sizeof name, "rank %d", plan->victim);
    EXPECT(status == RING_ERR_PEER, "status %d: %s", (int)status, ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), name) != NULL, "want %s named: %s", name,
           ring_last_error(comm));
    EXPECT(late < plan->limit, "known after %.2f s, limit %.2f s", late, plan->limit);
    EXPECT(ring_barrier(comm, NULL) == RING_ERR_PEER, "a later call returns at once");
    return 0;
}

static int reduce_until_error(int rank, int ranks, harness_board *board, void *arg)
{
    const kill_plan *plan = arg;
    ring_comm *comm;
    float *x;
    ring_status status = RING_OK;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_mem_alloc((void **)&x, COUNT * sizeof *x));
    atomic_fetch_add(&board->counters[0], 1);
    while (status == RING_OK)
        status = ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_MAX, comm, NULL);
    const int failed = check_error(comm, status, plan, board);
    atomic_fetch_add(&board->counters[1], 1);
    ring_mem_free(x);
    ring_comm_destroy(comm);
    return failed;
}

static int run_and_hit(kill_plan *plan)
{
    return harness_run_beside(RANKS, reduce_until_error, plan, hit_victim);
}

static int entries_in_dev_shm(void)
{
    int entries = 0;
    DIR *dir = opendir("/dev/shm");
    if (dir == NULL)
        return 0;
    while (readdir(dir) != NULL)
        entries++;
    closedir(dir);
    return entries;
}

static int kills_wanted(void)
{
    const char *text = getenv("RING_TEST_KILLS");
    return text != NULL ? atoi(text) : 10;
}

static void test_kill_at_random_is_named_within_two_seconds(void **state)
{
    (void)state;
    const int before = entries_in_dev_shm();
    srand(20260101);
    for (int i = 0; i < kills_wanted(); i++) {
        kill_plan plan = {.victim = i % RANKS, .signal = SIGKILL,
                          .delay_us = (unsigned)(rand() % 50000), .limit = 2};
        print_message("kill %d: rank %d after %u us\n", i, plan.victim, plan.delay_us);
        assert_int_equal(run_and_hit(&plan), 1); /* the victim alone */
    }
    assert_int_equal(entries_in_dev_shm(), before);
}

static void test_stopped_rank_is_named_within_the_peer_timeout(void **state)
{
    (void)state;
    setenv("RING_PEER_TIMEOUT", "1", 1);
    for (int victim = 0; victim < 2; victim++) {
        kill_plan plan = {.victim = victim, .signal = SIGSTOP, .delay_us = 20000, .limit = 2.5};
        assert_int_equal(run_and_hit(&plan), 1);
    }
    unsetenv("RING_PEER_TIMEOUT");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_at_random_is_named_within_two_seconds),
        cmocka_unit_test(test_stopped_rank_is_named_within_the_peer_timeout),
    };
    transport_name = argc > 1 ? argv[1] : "shm";
    setenv("RING_TRANSPORT", transport_name, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

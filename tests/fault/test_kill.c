/* SPDX-License-Identifier: Apache-2.0
 *
 * A rank dies or stops at a random moment of a collective: every other rank returns an error
 * that names it in time, and nothing remains of it. RING_TEST_KILLS sets the number of kills
 * (10). Usage: test_fault_kill TRANSPORT */
#include "harness.h"
#include "traces.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#include "unit_test.h"

enum { RANKS = 4, COUNT = 60000 };

typedef struct kill_plan {
    int victim, signal;
    unsigned delay_us;
    double limit;      /* seconds until all others must know, where times are judged */
    bool leaves_child; /* the victim has forked, as data loaders do */
} kill_plan;

/** Notes of the ranks for each other and for the test, in shared memory. */
typedef struct notes {
    _Atomic double hit_at;           /* when the victim was hit, by CLOCK_MONOTONIC        */
    unsigned long inodes[RANKS][64]; /* of the memory files that each rank uses; 0 ends them */
} notes;

static notes *shared;

static const char *transport_name;

/* ---- Memory files ----------------------------------------------------------------- */

static void note_inode(unsigned long inode, void *context)
{
    unsigned long *at = context, *last = at + 62;
    while (at < last && *at != 0 && *at != inode)
        at++;
    *at = inode;
}

static void count_if_noted(unsigned long inode, void *left)
{
    for (int rank = 0; rank < RANKS; rank++)
        for (const unsigned long *at = shared->inodes[rank]; *at != 0; at++)
            *(int *)left += *at == inode;
}

/* A killed process takes a moment to end, and so does a child that it left.
 * @return uses of this run's memory files. */
static int memory_files_left(void)
{
    int left;
    const double end = harness_now() + 30;
    do {
        left = 0;
        traces_everywhere(count_if_noted, &left);
    } while (left > 0 && harness_now() < end && usleep(20000) == 0);
    return left;
}

static void count_foreign(unsigned long inode, void *context)
{
    unsigned long *own_and_others = context;
    if (own_and_others[0] == 0)
        own_and_others[0] = inode;
    own_and_others[1] += inode != own_and_others[0];
}

/* Without a communicator a process has its own heap and nothing of its peers'. */
static int holds_only_its_own(void)
{
    unsigned long own_and_others[2] = {0, 0};
    traces_of("self", count_foreign, own_and_others);
    return own_and_others[0] != 0 && own_and_others[1] == 0;
}

/* ---- Ranks ------------------------------------------------------------------------ */

/* Lives on until the others have reported, and then a little. */
static void leave_child(harness_board *board)
{
    if (fork() != 0)
        return;
    const double end = harness_now() + 20;
    while (atomic_load(&board->counters[1]) < RANKS - 1 && harness_now() < end)
        usleep(1000);
    _exit(0);
}

static void hit_victim(harness_board *board, void *arg)
{
    const kill_plan *plan = arg;
    while (atomic_load(&board->counters[0]) < RANKS)
        usleep(100);
    usleep(plan->delay_us);
    atomic_store(&shared->hit_at, harness_now());
    kill(board->pids[plan->victim], plan->signal);
    /* A stopped rank is ended once the others have reported, so that the run can end. */
    const double end = harness_now() + 10;
    while (plan->signal == SIGSTOP && atomic_load(&board->counters[1]) < RANKS - 1 &&
           harness_now() < end)
        usleep(1000);
    kill(board->pids[plan->victim], SIGKILL);
}

static int check_error(ring_comm *comm, ring_status status, const kill_plan *plan)
{
    char name[32];
    const double late = harness_now() - atomic_load(&shared->hit_at);
    snprintf(name, sizeof name, "rank %d", plan->victim);
    EXPECT(status == RING_ERR_PEER, "status %d: %s", (int)status, ring_last_error(comm));
    EXPECT(strstr(ring_last_error(comm), name) != NULL, "want %s named: %s", name,
           ring_last_error(comm));
    const double limit = harness_is_timed() ? plan->limit : HARNESS_PROMPT;
    EXPECT(late < limit, "known after %.2f s, limit %.2f s", late, limit);
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
    traces_of("self", note_inode, shared->inodes[rank]);
    if (plan->leaves_child && rank == plan->victim)
        leave_child(board);
    atomic_fetch_add(&board->counters[0], 1);
    while (status == RING_OK)
        status = ring_all_reduce(x, x, COUNT, RING_FLOAT32, RING_MAX, comm, NULL);
    const int failed = check_error(comm, status, plan);
    atomic_fetch_add(&board->counters[1], 1);
    ring_comm_destroy(comm);
    EXPECT(holds_only_its_own(), "memory of peers is still mapped or open");
    ring_mem_free(x);
    return failed;
}

/* ---- Runs ------------------------------------------------------------------------- */

static bool owns_dev_shm;

static int entries_in_dev_shm(void)
{
    int entries = 0;
    DIR *dir = owns_dev_shm ? opendir("/dev/shm") : NULL;
    if (dir == NULL)
        return 0;
    while (readdir(dir) != NULL)
        entries++;
    closedir(dir);
    return entries;
}

/* A /dev/shm of this test's own, which no other program changes. @return false: not allowed here.
 */
static bool enter_own_dev_shm(void)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("none", "/dev/shm", "tmpfs", 0, "size=1g") == 0;
}

/* The victim alone fails, and nothing is left: neither a name nor memory without one. */
static void run_and_hit(kill_plan *plan)
{
    const int entries = entries_in_dev_shm();
    memset(shared, 0, sizeof *shared);
    assert_int_equal(harness_run_beside(RANKS, reduce_until_error, plan, hit_victim), 1);
    assert_int_not_equal(shared->inodes[0][0], 0);
    assert_int_equal(memory_files_left(), 0);
    assert_int_equal(entries_in_dev_shm(), entries);
}

static int kills_wanted(void)
{
    return (int)harness_number("RING_TEST_KILLS", 10);
}

static void test_kill_at_random_is_named_within_two_seconds(void **state)
{
    srand(20260101);
    for (int i = 0; i < kills_wanted(); i++) {
        kill_plan plan = {.victim = i % RANKS,
                          .signal = SIGKILL,
                          .delay_us = (unsigned)(rand() % 50000),
                          .limit = 2};
        print_message("kill %d: rank %d after %u us\n", i, plan.victim, plan.delay_us);
        run_and_hit(&plan);
    }
}

/* Copies of the victim's sockets in its child would hide its end from the others. */
static void test_kill_is_named_though_the_victims_child_lives(void **state)
{
    for (int victim = 0; victim < RANKS; victim++) {
        kill_plan plan = {.victim = victim,
                          .signal = SIGKILL,
                          .delay_us = 20000,
                          .limit = 2,
                          .leaves_child = true};
        run_and_hit(&plan);
    }
}

static void test_stopped_rank_is_named_within_the_peer_timeout(void **state)
{
    setenv("RING_PEER_TIMEOUT", "1.5", 1);
    for (int victim = 0; victim < 2; victim++) {
        kill_plan plan = {.victim = victim, .signal = SIGSTOP, .delay_us = 20000, .limit = 3};
        run_and_hit(&plan);
    }
    unsetenv("RING_PEER_TIMEOUT");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_at_random_is_named_within_two_seconds),
        cmocka_unit_test(test_kill_is_named_though_the_victims_child_lives),
        cmocka_unit_test(test_stopped_rank_is_named_within_the_peer_timeout),
    };
    transport_name = argc > 1 ? argv[1] : "shm";
    setenv("RING_TRANSPORT", transport_name, 1);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    owns_dev_shm = enter_own_dev_shm();
    if (!owns_dev_shm)
        print_message("entries of /dev/shm are not counted: no mount namespace here: %m\n");
    return cmocka_run_group_tests(tests, NULL, NULL);
}

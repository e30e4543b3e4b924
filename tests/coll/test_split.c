/* SPDX-License-Identifier: Apache-2.0
 * Tests communicators that are derived from others: their members, their results and their cost,
 * and that their calls do not interfere with each other. Usage: test_coll_split TRANSPORT */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

enum { LARGE = 300007 };

/* ---- Values -------------------------------------------------------------------------------- */

/* Ranks of the parent whose sum a communicator of these must give. */
static int expect_sum(ring_comm *comm, int mine, int want)
{
    int32_t sum = mine;
    EXPECT_OK(ring_all_reduce(&sum, &sum, 1, RING_INT32, RING_SUM, comm, NULL));
    EXPECT(sum == want, "%d, want %d", sum, want);
    return 0;
}

static int expect_order(ring_comm *comm, int mine, const int *want, int count)
{
    int32_t all[HARNESS_MAX_RANKS];
    const int32_t me = mine;
    EXPECT(ring_comm_size(comm) == count, "%d ranks, want %d", ring_comm_size(comm), count);
    EXPECT_OK(ring_all_gather(&me, all, 1, RING_INT32, comm, NULL));
    for (int r = 0; r < count; r++)
        EXPECT(all[r] == want[r], "rank %d was %d, want %d", r, all[r], want[r]);
    EXPECT(all[ring_comm_rank(comm)] == mine, "this is rank %d", ring_comm_rank(comm));
    return 0;
}

/* ---- Who is in which ------------------------------------------------------------------------- */

static int a_split_has_the_ranks_of_a_colour_by_key(int rank, int ranks, harness_board *board,
                                                    void *arg)
{
    static const int even[] = {4, 2, 0}, odd[] = {5, 3, 1};
    ring_comm *comm, *half, *quarter;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_comm_split(comm, rank % 2, -rank, &half));
    const int bad = expect_order(half, rank, rank % 2 == 0 ? even : odd, 3) ||
                    expect_sum(half, rank, rank % 2 == 0 ? 6 : 9) ||
                    harness_expect_sum(half, rank, rank % 2 == 0 ? 6 : 9, LARGE) ||
                    expect_sum(comm, rank, 15);
    EXPECT_OK(ring_comm_split(half, rank < 2 ? RING_SPLIT_NONE : 7, 0, &quarter));
    EXPECT((quarter == NULL) == (rank < 2), "a rank without a colour has a communicator");
    ring_comm_destroy(comm); /* the others go on without it */
    const int rest = quarter == NULL ? 0 : expect_sum(quarter, rank, rank % 2 == 0 ? 6 : 8);
    const int last = expect_sum(half, 1, 3);
    ring_comm_destroy(quarter);
    ring_comm_destroy(half);
    return bad || rest || last;
}

static int alone(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_comm *own, *none;
    EXPECT_OK(ring_comm_split(comm, rank, 0, &own));
    EXPECT(ring_comm_size(own) == 1 && ring_comm_rank(own) == 0, "not alone");
    const int bad = expect_sum(own, 5, 5);
    EXPECT_OK(ring_comm_split(own, RING_SPLIT_NONE, 0, &none));
    EXPECT(none == NULL, "there is one of nobody");
    ring_comm_destroy(own);
    return bad;
}

static void test_a_colour_of_its_own_is_a_rank_alone(void **state)
{
    run_joined(3, alone);
    run_joined(1, alone);
}

/* One rank's arguments are wrong: all hear of it. */
static int a_refused_split_is_told_to_all(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm, *half = NULL;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const ring_status status = ring_comm_split(comm, 0, 0, rank == 1 ? NULL : &half);
    EXPECT(status == (rank == 1 ? RING_ERR_ARGUMENT : RING_ERR_MISMATCH) && half == NULL, "%s: %s",
           ring_status_string(status), ring_last_error(NULL));
    EXPECT(strstr(ring_last_error(NULL), "out is NULL") != NULL, "%s", ring_last_error(NULL));
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Splits that return at once -------------------------------------------------------------- */

static ring_config at_once(void)
{
    ring_config config = RING_CONFIG_INIT;
    config.nonblocking = 1;
    return config;
}

/* Waits without a call that itself waits for the start. */
static ring_status await_split(const ring_comm *comm)
{
    ring_status status;
    for (const double since = harness_now();
         (status = ring_comm_status(comm)) == RING_IN_PROGRESS && harness_is_prompt(since);)
        usleep(1000);
    return status;
}

/* Rank 0 is late, and meanwhile the others have started their next calls on the parent. Some ranks
 * block, some do not, and some get no communicator. */
static int a_split_in_the_background(int rank, int ranks, harness_board *board, void *arg)
{
    const ring_config config = at_once();
    ring_comm *comm, *part = (ring_comm *)(uintptr_t)1;
    ring_work *work;
    int32_t x = rank;
    ring_call call = RING_CALL_INIT;
    call.work = &work;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const int colour = rank == 3 ? RING_SPLIT_NONE : rank % 2;
    if (rank == 0) {
        EXPECT(harness_await(board, 0, ranks - 2), "a rank waits in its split");
        EXPECT_OK(ring_comm_split(comm, colour, 0, &part));
    } else {
        EXPECT_OK(ring_comm_split_config(comm, colour, 0, rank != 2 ? &config : NULL, &part));
    }
    EXPECT((part == NULL) == (rank == 3), "rank %d has a communicator", rank);
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, &call));
    if (rank == 1) {
        EXPECT(ring_comm_status(part) == RING_IN_PROGRESS, "the split has ended without rank 0");
        EXPECT(ring_comm_rank(part) == -1 && ring_comm_size(part) == -1, "a rank before the end");
    }
    atomic_fetch_add(&board->counters[0], 1);
    if (rank != 3)
        EXPECT_OK(await_split(part));
    EXPECT_OK(ring_wait(&work));
    EXPECT(x == ranks * (ranks - 1) / 2, "%d", (int)x);
    if (rank % 2 == 0) {
        const int want[] = {0, 2, 4};
        EXPECT(expect_order(part, rank, want, 3) == 0, "rank %d", rank);
    } else if (rank == 1) {
        EXPECT(ring_comm_rank(part) == 0 && ring_comm_size(part) == 1, "not alone");
    }
    EXPECT_OK(ring_barrier(comm, NULL));
    ring_comm_destroy(part);
    ring_comm_destroy(comm);
    return 0;
}

/* The first call on the new communicator waits for the split; so does its end. */
static int calls_wait_for_the_split(int rank, int ranks, harness_board *board, void *arg)
{
    const ring_config config = at_once();
    ring_comm *comm, *parts[3], *none;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int i = 0; i < 3; i++) {
        if (rank == 0)
            usleep(20000);
        EXPECT_OK(ring_comm_split_config(comm, 0, i % 2 == 0 ? rank : -rank, &config, &parts[i]));
    }
    EXPECT(expect_sum(parts[1], rank, ranks * (ranks - 1) / 2) == 0, "the second one");
    EXPECT(ring_comm_rank(parts[1]) == ranks - 1 - rank, "rank %d", ring_comm_rank(parts[1]));
    EXPECT_OK(ring_comm_split_config(parts[1], RING_SPLIT_NONE, 0, &config, &none));
    EXPECT(none == NULL, "rank %d", rank);
    EXPECT_OK(ring_comm_flush(parts[1], HARNESS_PROMPT));
    for (int i = 0; i < 3; i++)
        ring_comm_destroy(parts[i]);
    ring_comm_destroy(comm);
    return 0;
}

/* The parent is destroyed, or aborted by another rank, before all ranks have called. */
static int a_parent_that_ends(int rank, int ranks, harness_board *board, void *arg)
{
    const ring_config config = at_once();
    const bool aborts = arg != NULL;
    ring_comm *comm, *part = NULL, *none;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    const double since = harness_now();
    if (rank != 0) {
        EXPECT_OK(ring_comm_split_config(comm, 0, 0, &config, &part));
        EXPECT_OK(ring_comm_split_config(comm, RING_SPLIT_NONE, 0, &config, &none));
    }
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    if (aborts && rank == 0)
        EXPECT_OK(ring_comm_abort(comm, "enough"));
    if (!aborts && rank == 1)
        ring_comm_destroy(comm);
    if (rank != 0) {
        EXPECT(await_split(part) == RING_ERR_ABORTED, "%s", ring_last_error(part));
        EXPECT(strstr(ring_last_error(part), aborts ? "enough" : "unfinished calls") != NULL, "%s",
               ring_last_error(part));
        EXPECT(ring_barrier(part, NULL) == RING_ERR_ABORTED, "a call");
    }
    EXPECT(harness_is_prompt(since), "%.2f s", harness_now() - since);
    atomic_fetch_add(&board->counters[1], 1);
    EXPECT(harness_await(board, 1, ranks), "a rank is late");
    ring_comm_destroy(part);
    if (aborts || rank != 1)
        ring_comm_destroy(comm);
    return 0;
}

static int a_parent_is_aborted(int rank, int ranks, harness_board *board, void *arg)
{
    static int aborts;
    return a_parent_that_ends(rank, ranks, board, &aborts);
}

/* A new communicator is destroyed before the split has ended, which is waited for. */
static int the_new_one_ends_at_once(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    const ring_config config = at_once();
    ring_comm *part;
    if (rank == 0)
        usleep(200000);
    EXPECT_OK(ring_comm_split_config(comm, 0, 0, &config, &part));
    ring_comm_destroy(part);
    EXPECT(expect_sum(comm, rank, ranks * (ranks - 1) / 2) == 0, "the parent");
    return 0;
}

/* Rank 1 never calls the split, which ends for all ranks as the parent does. */
static int the_new_one_is_aborted(int rank, int ranks, harness_board *board, void *arg)
{
    const ring_config config = at_once();
    ring_comm *comm, *part = NULL;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    if (rank != 1)
        EXPECT_OK(ring_comm_split_config(comm, 0, 0, &config, &part));
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    const double since = harness_now();
    if (rank == 0)
        EXPECT_OK(ring_comm_abort(part, "too early"));
    EXPECT(harness_is_prompt(since), "the abort took %.2f s", harness_now() - since);
    if (rank != 1) {
        EXPECT(await_split(part) == RING_ERR_ABORTED, "%s", ring_last_error(part));
        EXPECT(strstr(ring_last_error(part), "too early") != NULL, "%s", ring_last_error(part));
    }
    while (ring_comm_status(comm) == RING_OK && harness_is_prompt(since))
        usleep(1000);
    EXPECT(ring_barrier(comm, NULL) == RING_ERR_ABORTED, "%s", ring_last_error(comm));
    EXPECT(harness_is_prompt(since), "%.2f s", harness_now() - since);
    atomic_fetch_add(&board->counters[1], 1);
    EXPECT(harness_await(board, 1, ranks), "a rank is late");
    ring_comm_destroy(part);
    ring_comm_destroy(comm);
    return 0;
}

/* The abort may come before, during or after the agreement of the ranks, or after the split. */
static int the_new_one_is_aborted_while_it_starts(ring_comm *comm, int rank, int ranks,
                                                  harness_board *board)
{
    const ring_config config = at_once();
    for (int i = 0; i < 30; i++) {
        ring_comm *parent, *part;
        EXPECT_OK(ring_comm_dup(comm, &parent));
        const ring_status status = ring_comm_split_config(parent, 0, 0, &config, &part);
        EXPECT(status == RING_OK || (rank != 0 && status == RING_ERR_ABORTED), "%s",
               ring_last_error(NULL));
        const double since = harness_now();
        if (rank == 0) {
            usleep((useconds_t)(20 * i));
            EXPECT_OK(ring_comm_abort(part, "too early"));
        }
        while (part != NULL && ring_comm_status(part) != RING_ERR_ABORTED)
            EXPECT(harness_is_prompt(since), "%s", ring_status_string(ring_comm_status(part)));
        EXPECT_OK(ring_barrier(comm, NULL));
        ring_comm_destroy(part);
        ring_comm_destroy(parent);
    }
    return 0;
}

/* One thread, one rank after the other. */
static void test_one_thread_splits_for_several_ranks(void **state)
{
    enum { RANKS = 4 };
    const ring_config config = at_once();
    ring_unique_id id;
    ring_comm *comms[RANKS], *halves[RANKS];
    ring_work *works[RANKS];
    int32_t x[RANKS];
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(ring_comm_init_config(&comms[r], RANKS, &id, r, &config), RING_OK);
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(ring_comm_split_config(comms[r], r % 2, 0, &config, &halves[r]), RING_OK);
    for (int r = 0; r < RANKS; r++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[r];
        x[r] = r;
        assert_int_equal(ring_all_reduce(&x[r], &x[r], 1, RING_INT32, RING_SUM, halves[r], &call),
                         RING_OK);
    }
    assert_int_equal(ring_wait_all(works, RANKS), RING_OK);
    for (int r = 0; r < RANKS; r++) {
        assert_int_equal(x[r], r % 2 == 0 ? 2 : 4);
        assert_int_equal(ring_comm_rank(halves[r]), r / 2);
        ring_comm_destroy(halves[r]);
    }
    for (int r = 0; r < RANKS; r++)
        ring_comm_destroy(comms[r]);
}

/* Only some settings may differ from the parent's; the other ranks hear of a refusal. */
static int settings_of_a_split(int rank, int ranks, harness_board *board, void *arg)
{
    static const char *const own[] = {"RING_PROGRESS=none", "RING_EXIT=leave", NULL};
    static const char *const not_own[] = {"RING_EXIT=leave", "RING_ALGO=ring", NULL};
    ring_config config = RING_CONFIG_INIT;
    ring_comm *comm, *part;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    config.settings = rank == 0 ? own : NULL;
    EXPECT_OK(ring_comm_split_config(comm, 0, 0, &config, &part));
    EXPECT(expect_sum(part, rank, ranks * (ranks - 1) / 2) == 0, "rank %d", rank);
    ring_comm_destroy(part);
    config.settings = rank == 1 ? not_own : NULL;
    const ring_status status = ring_comm_split_config(comm, 0, 0, &config, &part);
    EXPECT(status == (rank == 1 ? RING_ERR_CONFIG : RING_ERR_MISMATCH) && part == NULL, "%s: %s",
           ring_status_string(status), ring_last_error(NULL));
    EXPECT(harness_says("RING_ALGO=ring: a derived communicator"), "%s", ring_last_error(NULL));
    atomic_fetch_add(&board->counters[0], 1);
    EXPECT(harness_await(board, 0, ranks), "a rank is late");
    ring_comm_destroy(comm);
    return 0;
}

/* ---- Many ------------------------------------------------------------------------------------ */

enum { MANY = 64 };

static int count_entries(const char *folder, const char *prefix)
{
    char path[300], target[64];
    int count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir != NULL && (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        const ssize_t length = readlink(path, target, sizeof target - 1);
        if (length >= 0)
            target[length] = '\0';
        count += e->d_name[0] != '.' &&
                 (prefix == NULL || (length > 0 && strncmp(target, prefix, strlen(prefix)) == 0));
    }
    if (dir != NULL)
        closedir(dir);
    return count;
}

static int make_many(ring_comm *comm, int rank, ring_comm **many)
{
    double took[MANY];
    for (int i = 0; i < MANY; i++) {
        const double start = harness_now();
        EXPECT_OK(ring_comm_split(comm, 0, i % 2 == 0 ? rank : -rank, &many[i]));
        took[i] = harness_now() - start;
    }
    const double median = harness_median(took, MANY);
    printf("rank %d: a split takes %.0f us (median), %.0f at most\n", rank, 1e6 * median,
           1e6 * took[MANY - 1]);
    EXPECT(!harness_is_timed() || median < 0.002, "a split takes %g s", median);
    return 0;
}

/* All have calls under way at once, waited for in another order on each rank. */
static int use_together(ring_comm **many, int rank, int ranks)
{
    ring_work *works[MANY];
    int32_t sums[MANY];
    for (int i = 0; i < MANY; i++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[i];
        sums[i] = rank + i;
        EXPECT_OK(ring_all_reduce(&sums[i], &sums[i], 1, RING_INT32, RING_SUM, many[i], &call));
    }
    for (int k = 0; k < MANY; k++) {
        const int i = rank % 2 == 0 ? k : MANY - 1 - k, want = ranks * (ranks - 1) / 2 + ranks * i;
        EXPECT_OK(ring_wait(&works[i]));
        EXPECT(sums[i] == want, "communicator %d: %d, want %d", i, sums[i], want);
    }
    return 0;
}

typedef struct user {
    ring_comm **many;
    int rank, ranks, first, bad;
} user;

static void *use_some(void *arg)
{
    user *u = arg;
    for (int round = 0; round < 20; round++)
        for (int i = u->first; i < MANY; i += 4)
            u->bad |= expect_sum(u->many[i], u->rank, u->ranks * (u->ranks - 1) / 2);
    return NULL;
}

static int use_by_threads(ring_comm **many, int rank, int ranks)
{
    pthread_t threads[4];
    user users[4];
    int bad = 0;
    for (int t = 0; t < 4; t++) {
        users[t] = (user){many, rank, ranks, t, 0};
        EXPECT(pthread_create(&threads[t], NULL, use_some, &users[t]) == 0, "no thread");
    }
    for (int t = 0; t < 4; t++) {
        pthread_join(threads[t], NULL);
        bad |= users[t].bad;
    }
    return bad;
}

static int many_communicators_cost_little_and_do_not_meet(ring_comm *comm, int rank, int ranks,
                                                          harness_board *board)
{
    ring_comm *many[MANY];
    EXPECT(expect_sum(comm, rank, 1) == 0, "the parent does not work");
    EXPECT(harness_expect_sum(comm, rank, 1, LARGE) == 0, "the parent does not work");
    EXPECT_OK(ring_barrier(comm, NULL));
    const int sockets = count_entries("/proc/self/fd", "socket:");
    const int descriptors = count_entries("/proc/self/fd", NULL);
    const int threads = count_entries("/proc/self/task", NULL);
    EXPECT(make_many(comm, rank, many) == 0, "splits");
    EXPECT_OK(ring_barrier(comm, NULL));
    EXPECT(count_entries("/proc/self/fd", "socket:") == sockets, "splits opened sockets");
    EXPECT(count_entries("/proc/self/fd", NULL) <= descriptors + threads,
           "splits opened descriptors"); /* each thread opens one when it first sleeps or counts */
    EXPECT(count_entries("/proc/self/task", NULL) == threads, "splits started threads");
    EXPECT_OK(ring_barrier(comm, NULL));
    const int bad = use_together(many, rank, ranks) || use_by_threads(many, rank, ranks);
    EXPECT_OK(ring_barrier(comm, NULL)); /* ranks may be threads of one process */
    EXPECT(count_entries("/proc/self/task", NULL) <= threads, "use started threads");
    for (int i = 0; i < MANY; i++)
        ring_comm_destroy(many[i]);
    return bad;
}

/* Each call uses links between all ranks, and others between neighbours. */
static int use_all_links(ring_comm *comm, int rank, int ranks)
{
    const int32_t sum = ranks * (ranks - 1) / 2;
    EXPECT(expect_sum(comm, rank, sum) == 0, "a short call");
    EXPECT(harness_expect_sum(comm, rank, sum, LARGE) == 0, "a long call");
    int32_t mine = rank, theirs[HARNESS_MAX_RANKS];
    EXPECT_OK(ring_group_start());
    for (int other = 0; other < ranks; other++) {
        EXPECT_OK(ring_send(&mine, 1, RING_INT32, other, comm, NULL));
        EXPECT_OK(ring_recv(&theirs[other], 1, RING_INT32, other, comm, NULL));
    }
    EXPECT_OK(ring_group_end());
    for (int other = 0; other < ranks; other++)
        EXPECT(theirs[other] == other, "rank %d sent %d", other, theirs[other]);
    return 0;
}

/* Sockets of connections that were dialed from both ends are closed a moment later. */
static int await_descriptors(int most)
{
    const double end = harness_now() + 20;
    int now = count_entries("/proc/self/fd", NULL);
    while (now > most && harness_now() < end) {
        usleep(1000);
        now = count_entries("/proc/self/fd", NULL);
    }
    return now;
}

/* Links share a pair's descriptor, and sleepers take theirs from a pool. A rank has two threads,
 * and this process has all ranks if they are threads. */
static int many_in_use(ring_comm *comm, int rank, int ranks, harness_board *board)
{
    ring_comm *many[MANY];
    const int pool = 2 * ranks;
    EXPECT(use_all_links(comm, rank, ranks) == 0, "the parent");
    EXPECT_OK(ring_barrier(comm, NULL));
    const int descriptors = count_entries("/proc/self/fd", NULL);
    const int threads = count_entries("/proc/self/task", NULL);
    EXPECT_OK(ring_barrier(comm, NULL));
    EXPECT(make_many(comm, rank, many) == 0, "splits");
    for (int i = 0; i < MANY; i++)
        EXPECT(use_all_links(many[i], ring_comm_rank(many[i]), ranks) == 0, "communicator %d", i);
    EXPECT_OK(ring_barrier(comm, NULL));
    const int after = await_descriptors(descriptors + pool);
    printf("rank %d of %d: %d descriptors before %d communicators, %d after\n", rank, ranks,
           descriptors, MANY, after);
    EXPECT(after <= descriptors + pool, "%d descriptors, %d before", after, descriptors);
    EXPECT(count_entries("/proc/self/task", NULL) <= threads, "use started threads");
    EXPECT_OK(ring_barrier(comm, NULL));
    for (int i = 0; i < MANY; i++)
        ring_comm_destroy(many[i]);
    return 0;
}

static void test_communicators_in_use_cost_no_descriptors(void **state)
{
    static const int ranks[] = {2, 4, 5};
    if (strcmp(cases_transport(), "loop") != 0 && strcmp(cases_transport(), "shm") != 0)
        skip_because("a connection of this transport carries the bytes of one link");
    for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
        run_joined(ranks[i], many_in_use);
}

/* ---- Beside works of the parent ------------------------------------------------ */

static int a_dup_is_made_while_works_run_on_the_parent(ring_comm *comm, int rank, int ranks,
                                                       harness_board *board)
{
    enum { COUNT = 1 << 20, WORKS = 4 };
    ring_comm *copy;
    ring_work *works[WORKS];
    int32_t *x[WORKS], one = 1;
    for (int w = 0; w < WORKS; w++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[w];
        EXPECT_OK(ring_mem_alloc((void **)&x[w], COUNT * sizeof *x[w]));
        for (int i = 0; i < COUNT; i++)
            x[w][i] = rank + w;
        EXPECT_OK(ring_all_reduce(x[w], x[w], COUNT, RING_INT32, RING_SUM, comm, &call));
    }
    EXPECT_OK(ring_comm_dup(comm, &copy));
    EXPECT_OK(ring_all_reduce(&one, &one, 1, RING_INT32, RING_SUM, copy, NULL));
    EXPECT(one == ranks && ring_comm_rank(copy) == rank, "%d of %d", one, ranks);
    for (int w = 0; w < WORKS; w++) {
        EXPECT_OK(ring_wait(&works[w]));
        for (int i = 0; i < COUNT; i++)
            EXPECT(x[w][i] == ranks * (ranks - 1) / 2 + ranks * w, "work %d: %d", w, x[w][i]);
        ring_mem_free(x[w]);
    }
    ring_comm_destroy(copy);
    return 0;
}

/* ---- Apart in failure ---------------------------------------------------------- */

static int communicators_fail_apart(int rank, int ranks, harness_board *board, void *arg)
{
    ring_comm *comm, *half;
    int32_t x = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    EXPECT_OK(ring_comm_split(comm, rank / 2, 0, &half));
    if (rank == 0)
        EXPECT_OK(ring_comm_abort(half, "for a test"));
    const ring_status status = ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, half, NULL);
    EXPECT(status == (rank < 2 ? RING_ERR_ABORTED : RING_OK), "%s", ring_last_error(NULL));
    const int bad = expect_sum(comm, rank, 6);
    ring_comm_destroy(half);
    ring_comm_destroy(comm);
    return bad;
}

/* Rank 1 frees its copy, with a link or without one; the start's communicator lives on. */
static int a_call_without_one_that_has_freed_it_ends(int rank, int ranks, harness_board *board,
                                                     void *arg)
{
    ring_comm *comm, *copy;
    EXPECT_OK(harness_join(rank, ranks, board, &comm));
    for (int linked = 0; linked < 2; linked++) {
        int32_t x = 1;
        EXPECT_OK(ring_comm_dup(comm, &copy));
        if (linked)
            EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, copy, NULL));
        if (rank == 1)
            ring_comm_destroy(copy);
        EXPECT_OK(ring_barrier(comm, NULL));
        if (rank == 0) {
            const double start = harness_now();
            const ring_status status = ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, copy, NULL);
            EXPECT(status == RING_ERR_PEER, "%s", ring_status_string(status));
            EXPECT(harness_is_prompt(start), "after %g s", harness_now() - start);
            ring_comm_destroy(copy);
        }
        EXPECT(expect_sum(comm, rank, 1) == 0, "the parent");
    }
    ring_comm_destroy(comm);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        CASE_ALONE(a_split_has_the_ranks_of_a_colour_by_key, 6),
        cmocka_unit_test(test_a_colour_of_its_own_is_a_rank_alone),
        CASE_ALONE(a_refused_split_is_told_to_all, 2),
        CASE_ALONE(a_split_in_the_background, 5),
        CASE_ALONE(calls_wait_for_the_split, 1, 2, 3),
        CASE_ALONE(a_parent_that_ends, 3),
        CASE_ALONE(a_parent_is_aborted, 3),
        CASE(the_new_one_ends_at_once, 2, 3),
        CASE_ALONE(the_new_one_is_aborted, 2, 3),
        CASE(the_new_one_is_aborted_while_it_starts, 2),
        CASE_ALONE(settings_of_a_split, 2),
        cmocka_unit_test(test_one_thread_splits_for_several_ranks),
        CASE(many_communicators_cost_little_and_do_not_meet, 2),
        cmocka_unit_test(test_communicators_in_use_cost_no_descriptors),
        CASE(a_dup_is_made_while_works_run_on_the_parent, 3),
        CASE_ALONE(communicators_fail_apart, 4),
        CASE_ALONE(a_call_without_one_that_has_freed_it_ends, 2),
    };
    if (argc != 2)
        return 2;
    cases_begin(argc, argv);
    setenv("RING_TIMEOUT", "20", 1);
    return cmocka_run_group_tests_name("coll.split", tests, NULL, NULL);
}

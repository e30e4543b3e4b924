/* SPDX-License-Identifier: Apache-2.0
 * Tests nonblocking starts: one thread joins as several ranks, and the first call that needs the
 * communicator returns the error of a start that failed.
 * Usage: test_coll_start TRANSPORT */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "unit_test.h"

enum { RANKS = 4 };
static ring_config at_once(void)
{
    ring_config config = RING_CONFIG_INIT;
    config.nonblocking = 1;
    return config;
}

static void begin_all(ring_comm **comms, int ranks)
{
    const ring_config config = at_once();
    ring_unique_id id;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 0; r < ranks; r++) {
        assert_int_equal(ring_comm_init_config(&comms[r], ranks, &id, r, &config), RING_OK);
        assert_int_equal(ring_comm_rank(comms[r]), r);
        assert_int_equal(ring_comm_size(comms[r]), ranks);
    }
}

static void reduce_on_all(ring_comm **comms, int ranks)
{
    ring_work *works[RANKS];
    int32_t x[RANKS];
    for (int r = 0; r < ranks; r++) {
        ring_call call = RING_CALL_INIT;
        call.work = &works[r];
        x[r] = r + 1;
        assert_int_equal(ring_all_reduce(&x[r], &x[r], 1, RING_INT32, RING_SUM, comms[r], &call),
                         RING_OK);
        assert_int_equal(ring_comm_status(comms[r]), RING_OK);
    }
    assert_int_equal(ring_wait_all(works, (size_t)ranks), RING_OK);
    for (int r = 0; r < ranks; r++)
        assert_int_equal(x[r], ranks * (ranks + 1) / 2);
}

/* Two communicators of the same ranks, all by one thread. */
static void test_one_thread_is_all_ranks_of_two_communicators(void **state)
{
    ring_comm *a[RANKS], *b[RANKS];
    begin_all(a, RANKS);
    begin_all(b, RANKS);
    reduce_on_all(b, RANKS);
    reduce_on_all(a, RANKS);
    for (int r = 0; r < RANKS; r++) {
        ring_comm_destroy(a[r]);
        ring_comm_destroy(b[r]);
    }
}

static int begin_apart(int rank, int ranks, harness_board *board, void *arg)
{
    const ring_config config = at_once();
    ring_comm_info info = {.size = sizeof info};
    ring_comm *first, *comm;
    int32_t x = rank;
    EXPECT_OK(harness_join(rank, ranks, board, &first));
    ring_unique_id id;
    if (rank == 0)
        EXPECT_OK(ring_get_unique_id(&id));
    EXPECT_OK(ring_broadcast(&id, &id, sizeof id, RING_UINT8, 0, first, NULL));
    EXPECT_OK(ring_comm_init_config(&comm, ranks, &id, rank, &config));
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, comm, NULL));
    EXPECT(x == ranks * (ranks - 1) / 2, "%d", x);
    EXPECT_OK(ring_comm_get_info(comm, &info));
    EXPECT(info.ranks == ranks && info.init_seconds > 0, "%d ranks", info.ranks);
    ring_comm_destroy(comm);
    ring_comm_destroy(first);
    return 0;
}

/* The last rank makes the id, and the communicator is split. */
static int begin_by_any_process(int rank, int ranks, harness_board *board, void *arg)
{
    ring_config config = at_once();
    ring_comm *first, *comm, *part;
    ring_unique_id id;
    int32_t x = 1;
    config.any_process = 1;
    EXPECT_OK(harness_join(rank, ranks, board, &first));
    if (rank == ranks - 1)
        EXPECT_OK(ring_get_unique_id_config(&id, &config));
    EXPECT_OK(ring_broadcast(&id, &id, sizeof id, RING_UINT8, ranks - 1, first, NULL));
    EXPECT_OK(ring_comm_init_config(&comm, ranks, &id, rank, &config));
    EXPECT_OK(ring_comm_split(comm, rank == 0, -rank, &part));
    EXPECT_OK(ring_all_reduce(&x, &x, 1, RING_INT32, RING_SUM, part, NULL));
    EXPECT(x == (rank == 0 ? 1 : ranks - 1), "%d", x);
    ring_comm_destroy(part);
    ring_comm_destroy(comm);
    ring_comm_destroy(first);
    return 0;
}

static void test_any_rank_makes_the_id(void **state)
{
    run(3, begin_by_any_process);
}

static void test_ranks_begin_and_compute(void **state)
{
    run(3, begin_apart);
}

static void test_a_start_that_fails_is_told_by_the_first_call(void **state)
{
    const char *const settings[] = {"RING_INIT_TIMEOUT=0.5", NULL};
    ring_config config = at_once();
    ring_unique_id id;
    ring_comm *comm;
    config.settings = settings;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    assert_int_equal(ring_comm_init_config(&comm, 2, &id, 0, &config), RING_OK);
    assert_int_equal(ring_comm_status(comm), RING_IN_PROGRESS);
    assert_string_equal(ring_last_error(comm), "");
    assert_int_equal(ring_barrier(comm, NULL), RING_ERR_TIMEOUT);
    assert_non_null(strstr(ring_last_error(NULL), "rank 1 of 2 did not reach"));
    assert_non_null(strstr(ring_last_error(comm), "rank 1 of 2 did not reach"));
    assert_int_equal(ring_comm_status(comm), RING_ERR_TIMEOUT);
    assert_int_equal(ring_comm_abort(comm, "late"), RING_ERR_TIMEOUT);
    ring_comm_destroy(comm);
}

static const char *const no_deadline[] = {"RING_INIT_TIMEOUT=none", NULL};

/* The deadline of the environment is over when rank 1 begins. */
static void test_a_start_without_deadline_waits_for_late_ranks(void **state)
{
    ring_config config = at_once();
    ring_unique_id id;
    ring_comm *comms[2];
    setenv("RING_INIT_TIMEOUT", "0.3", 1);
    config.settings = no_deadline;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    assert_int_equal(ring_comm_init_config(&comms[0], 2, &id, 0, &config), RING_OK);
    usleep(1000000);
    assert_int_equal(ring_comm_status(comms[0]), RING_IN_PROGRESS);
    assert_int_equal(ring_comm_init_config(&comms[1], 2, &id, 1, &config), RING_OK);
    reduce_on_all(comms, 2);
    for (int r = 0; r < 2; r++)
        ring_comm_destroy(comms[r]);
    unsetenv("RING_INIT_TIMEOUT");
}

/* Rank 0 begins when the deadline of the environment is over. */
static void test_an_id_without_deadline_waits_for_rank_0(void **state)
{
    static const char *const wrong[] = {"RING_INIT_TIMEOUT=never", NULL};
    ring_config config = at_once();
    ring_unique_id ids[2];
    ring_comm *comms[2], *late;
    setenv("RING_INIT_TIMEOUT", "0.3", 1);
    config.settings = wrong;
    assert_int_equal(ring_get_unique_id_config(&ids[0], &config), RING_ERR_CONFIG);
    assert_int_equal(ring_get_unique_id_config(NULL, NULL), RING_ERR_ARGUMENT);
    config.settings = no_deadline;
    assert_int_equal(ring_get_unique_id_config(&ids[0], &config), RING_OK);
    assert_int_equal(ring_get_unique_id_config(&ids[1], NULL), RING_OK);
    usleep(600000);
    assert_int_equal(ring_comm_init_config(&late, 2, &ids[1], 0, &config), RING_OK);
    assert_int_equal(ring_barrier(late, NULL), RING_ERR_USAGE);
    assert_non_null(strstr(ring_last_error(late), "within RING_INIT_TIMEOUT (none), and an id"));
    ring_comm_destroy(late);
    for (int r = 0; r < 2; r++)
        assert_int_equal(ring_comm_init_config(&comms[r], 2, &ids[0], r, &config), RING_OK);
    reduce_on_all(comms, 2);
    for (int r = 0; r < 2; r++)
        ring_comm_destroy(comms[r]);
    unsetenv("RING_INIT_TIMEOUT");
}

static void test_the_earliest_deadline_counts(void **state)
{
    static const char *const soon[] = {"RING_INIT_TIMEOUT=0.5", NULL};
    ring_config config = at_once();
    ring_unique_id id;
    ring_comm *comms[2];
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 0; r < 2; r++) {
        config.settings = r == 0 ? no_deadline : soon;
        assert_int_equal(ring_comm_init_config(&comms[r], 3, &id, r, &config), RING_OK);
    }
    for (int r = 0; r < 2; r++) {
        assert_int_equal(ring_barrier(comms[r], NULL), RING_ERR_TIMEOUT);
        assert_non_null(strstr(ring_last_error(NULL), "rank 2 of 3 did not reach"));
        assert_non_null(strstr(ring_last_error(NULL),
                               "RING_INIT_TIMEOUT=none at rank 0, but another rank has"));
        ring_comm_destroy(comms[r]);
    }
}

/* ---- Aborting ------------------------------------------------------------------- */

enum { ATTEMPTS = 5 };

typedef enum ending { ABORT, DESTROY, ENDINGS } ending;

static int any_process; /* of the ids */

/* Ends a start of @p ranks in which only some ranks take part, at one of them.
 * @param present  bits: the ranks that begin. @return seconds until all of them have ended. */
static double end_start(int ranks, int present, int by, ending how, useconds_t after)
{
    ring_config config = at_once();
    ring_unique_id id;
    ring_comm *comms[RANKS];
    config.any_process = any_process;
    assert_int_equal(ring_get_unique_id_config(&id, &config), RING_OK);
    config.settings = no_deadline;
    for (int r = 0; r < ranks; r++)
        if (present >> r & 1)
            assert_int_equal(ring_comm_init_config(&comms[r], ranks, &id, r, &config), RING_OK);
    usleep(after);
    const double since = harness_now();
    if (how == ABORT)
        assert_int_equal(ring_comm_abort(comms[by], "enough"), RING_OK);
    else
        ring_comm_destroy(comms[by]);
    for (int r = 0; r < ranks; r++) {
        if (!(present >> r & 1) || (r == by && how == DESTROY))
            continue;
        while (ring_comm_status(comms[r]) <= RING_IN_PROGRESS && harness_is_prompt(since)) {
            usleep(100);
            if (harness_now() - since > 0.3) /* it may not have met the other ranks */
                (void)ring_comm_abort(comms[r], "enough: the communicator is destroyed");
        }
        if (ring_comm_status(comms[r]) != RING_ERR_ABORTED)
            print_error("rank %d: %s\n", r, ring_last_error(comms[r]));
        assert_int_equal(ring_comm_status(comms[r]), RING_ERR_ABORTED);
        assert_non_null(strstr(ring_last_error(comms[r]), how == ABORT ? "enough" : "destroyed"));
        assert_int_equal(ring_barrier(comms[r], NULL), RING_ERR_ABORTED);
    }
    for (int r = 0; r < ranks; r++)
        if ((present >> r & 1) && !(r == by && how == DESTROY))
            ring_comm_destroy(comms[r]);
    return harness_now() - since;
}

/* The time is judged by the best attempt, since machines may be busy. */
static void ends_at_once(int ranks, int present, int by)
{
    for (int i = 0; i < 2 * ENDINGS; i++) {
        const ending how = (ending)(i / 2);
        any_process = i % 2;
        double best = HARNESS_PROMPT;
        for (int j = 0; j < ATTEMPTS; j++) {
            const double seconds = end_start(ranks, present, by, how, j < 2 ? 0 : 100000);
            best = seconds < best ? seconds : best;
        }
        print_message("%d ranks, %#x begin, rank %d ends: %.1f ms\n", ranks, present, by,
                      1e3 * best);
        assert_true(best < 0.4);
    }
}

static void test_a_start_without_the_others_ends_at_once(void **state)
{
    ends_at_once(2, 0x1, 0);
    ends_at_once(2, 0x2, 1);
}

static void test_an_aborted_start_ends_on_all_ranks(void **state)
{
    ends_at_once(4, 0x7, 0);
    ends_at_once(4, 0x7, 2);
}

/* All ranks have begun, and are at any point of the start. Ranks may have left the start when it is
 * aborted; then their communicator ends. */
static void test_any_phase_of_a_start_can_be_aborted(void **state)
{
    for (int i = 0; i < 40; i++)
        (void)end_start(RANKS, 0xf, i % RANKS, (ending)(i / RANKS % 2), (useconds_t)(i * 150));
}

static void *first_call(void *comm)
{
    static ring_status status;
    status = ring_barrier(comm, NULL);
    return &status;
}

static void test_abort_ends_a_first_call_that_waits_for_the_start(void **state)
{
    ring_config config = at_once();
    ring_unique_id id;
    ring_comm *comm;
    pthread_t thread;
    void *status;
    config.settings = no_deadline;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    assert_int_equal(ring_comm_init_config(&comm, 2, &id, 0, &config), RING_OK);
    assert_int_equal(pthread_create(&thread, NULL, first_call, comm), 0);
    usleep(50000);
    assert_int_equal(ring_comm_abort(comm, NULL), RING_OK);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal(*(ring_status *)status, RING_ERR_ABORTED);
    assert_non_null(strstr(ring_last_error(comm), "no reason given"));
    ring_comm_destroy(comm);
}

/* Ranks 0 to 2 of 4, in their own processes or threads; rank 2 aborts. */
static int abort_among_processes(int rank, int ranks, harness_board *board, void *arg)
{
    ring_config config = at_once();
    ring_comm *first, *comm;
    ring_unique_id id;
    EXPECT_OK(harness_join(rank, ranks, board, &first));
    if (rank == 0)
        EXPECT_OK(ring_get_unique_id(&id));
    EXPECT_OK(ring_broadcast(&id, &id, sizeof id, RING_UINT8, 0, first, NULL));
    config.settings = no_deadline;
    EXPECT_OK(ring_comm_init_config(&comm, ranks + 1, &id, rank, &config));
    usleep(200000);
    const double since = harness_now();
    if (rank == 2)
        EXPECT_OK(ring_comm_abort(comm, "enough"));
    EXPECT(ring_barrier(comm, NULL) == RING_ERR_ABORTED, "%s", ring_last_error(NULL));
    EXPECT(harness_says("aborted by rank 2 (") && harness_says("): enough"), "%s",
           ring_last_error(NULL));
    EXPECT(harness_is_prompt(since), "took %g s", harness_now() - since);
    ring_comm_destroy(comm);
    ring_comm_destroy(first);
    return 0;
}

static void test_ranks_apart_learn_of_an_abort(void **state)
{
    run(3, abort_among_processes);
}

/* A program that looks at no status. */
static void ignore_all(int quiet)
{
    float x = 1;
    ring_comm *comm;
    ring_unique_id id = {{0}};
    ring_config config = RING_CONFIG_INIT;
    config.quiet = quiet;
    if (quiet)
        (void)ring_comm_init_config(&comm, 1, &id, 0, &config);
    else
        (void)ring_comm_init_env(&comm);
    (void)ring_all_reduce(&x, &x, 1, RING_FLOAT32, RING_SUM, comm, NULL);
    ring_comm_destroy(comm);
    _exit(comm == NULL ? 0 : 1);
}

/* Standard error of a child with a variable. */
static void stderr_of_ignoring(const char *name, const char *value, int quiet, char *out,
                               size_t size)
{
    int ends[2], status;
    size_t used = 0;
    ssize_t got;
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        setenv(name, value, 1);
        ignore_all(quiet);
    }
    close(ends[1]);
    while ((got = read(ends[0], out + used, size - 1 - used)) > 0)
        used += (size_t)got;
    out[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_a_start_that_fails_prints_its_reason_once(void **state)
{
    static const char *const wrong[][3] = {{"RING_ALGO", "rign", "RING_ALGO=rign: "},
                                           {"RING_TRANSPORT", "bogus", "RING_TRANSPORT=bogus: "},
                                           {"RING_TIMEOUT", "soon", "RING_TIMEOUT=soon: "},
                                           {"RANK", "0", "RANK is set, but WORLD_SIZE is not"}};
    char text[2000];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        stderr_of_ignoring(wrong[i][0], wrong[i][1], 0, text, sizeof text);
        assert_non_null(strstr(text, wrong[i][2]));
        assert_memory_equal(text, "[ring] error: ", strlen("[ring] error: "));
        assert_ptr_equal(strchr(text, '\n') + 1, text + strlen(text));
        stderr_of_ignoring(wrong[i][0], wrong[i][1], 1, text, sizeof text);
        assert_string_equal(text, "");
    }
}

static void test_one_that_was_only_begun_is_destroyed(void **state)
{
    ring_comm *comms[RANKS];
    begin_all(comms, RANKS);
    for (int r = 0; r < RANKS; r++)
        ring_comm_destroy(comms[r]);
}

static void test_wrong_settings_are_told_at_once(void **state)
{
    const char *const settings[] = {"RING_TIMEOUT=soon", NULL};
    ring_config config = at_once();
    ring_unique_id id;
    ring_comm *comm;
    config.settings = settings;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    assert_int_equal(ring_comm_init_config(&comm, 2, &id, 0, &config), RING_ERR_CONFIG);
    assert_null(comm);
}

static void test_ranks_with_other_ids_are_on_other_hosts(void **state)
{
    const char *const settings[2][3] = {{"RING_HOST_ID=a", "RING_TRANSPORT=tcp", NULL},
                                        {"RING_HOST_ID=b", "RING_TRANSPORT=tcp", NULL}};
    ring_comm *comms[RANKS];
    ring_config config = at_once();
    ring_unique_id id;
    assert_int_equal(ring_get_unique_id(&id), RING_OK);
    for (int r = 0; r < RANKS; r++) {
        config.settings = settings[r % 2];
        assert_int_equal(ring_comm_init_config(&comms[r], RANKS, &id, r, &config), RING_OK);
    }
    reduce_on_all(comms, RANKS);
    for (int r = 0; r < RANKS; r++) {
        ring_comm_info info = {.size = sizeof info};
        assert_int_equal(ring_comm_get_info(comms[r], &info), RING_OK);
        assert_int_equal(info.hosts, 2);
        assert_int_equal(info.local_ranks, RANKS / 2);
    }
    for (int r = 0; r < RANKS; r++)
        ring_comm_destroy(comms[r]);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_begin_and_compute), /* forks before there is a heap */
        cmocka_unit_test(test_any_rank_makes_the_id),
        cmocka_unit_test(test_ranks_apart_learn_of_an_abort),
        cmocka_unit_test(test_one_thread_is_all_ranks_of_two_communicators),
        cmocka_unit_test(test_a_start_that_fails_is_told_by_the_first_call),
        cmocka_unit_test(test_a_start_without_deadline_waits_for_late_ranks),
        cmocka_unit_test(test_an_id_without_deadline_waits_for_rank_0),
        cmocka_unit_test(test_the_earliest_deadline_counts),
        cmocka_unit_test(test_a_start_without_the_others_ends_at_once),
        cmocka_unit_test(test_an_aborted_start_ends_on_all_ranks),
        cmocka_unit_test(test_any_phase_of_a_start_can_be_aborted),
        cmocka_unit_test(test_abort_ends_a_first_call_that_waits_for_the_start),
        cmocka_unit_test(test_a_start_that_fails_prints_its_reason_once),
        cmocka_unit_test(test_one_that_was_only_begun_is_destroyed),
        cmocka_unit_test(test_wrong_settings_are_told_at_once),
        cmocka_unit_test(test_ranks_with_other_ids_are_on_other_hosts),
    };
    if (argc != 2)
        return 2;
    cases_begin(argc, argv);
    setenv("RING_TIMEOUT", "20", 1);
    return cmocka_run_group_tests_name("coll.start", tests, NULL, NULL);
}

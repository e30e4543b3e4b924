/* SPDX-License-Identifier: Apache-2.0
 * Watching over peers in real processes: on busy cores, with a thread that is held up, after broken
 * links, and a rank that ends with its report. The simulation judges who is named when. */
#include "stage.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { SIZE = 4 };

/* ---- Busy -------------------------------------------------------------------------- */

static atomic_bool rest;

static void *spin(void *unused)
{
    while (!atomic_load_explicit(&rest, memory_order_relaxed))
        continue;
    return unused;
}

static ring_status be_busy(stage *s, control_world **w)
{
    enum { SPINNERS = 4 };
    pthread_t threads[SPINNERS];
    for (int i = 0; i < SPINNERS; i++)
        pthread_create(&threads[i], NULL, spin, NULL);
    const ring_status status = verdict_within(*w, 3);
    atomic_store(&rest, true);
    for (int i = 0; i < SPINNERS; i++)
        pthread_join(threads[i], NULL);
    RING_TRY(status);
    return stage_meet(s, 1, SIZE);
}

static void busy_ranks_on_full_cores_are_never_taken_for_dead(void **state)
{
    set_number("RING_PEER_TIMEOUT", 1.5);
    stage_run(stage_new(SIZE, be_busy), 0);
}

/* ---- Reports ----------------------------------------------------------------------- */

/* As a program does that aborts and exits. */
static ring_status rank_0_reports_and_ends(stage *s, control_world **w)
{
    if ((*w)->rank == 0) {
        control_report(*w, RING_ERR_ABORTED, "rank 0 has had enough");
        _exit(0);
    }
    return expect_verdict(*w, RING_ERR_ABORTED, "rank 0 has had enough");
}

static void a_report_reaches_all_though_rank_0_ends_at_once(void **state)
{
    for (int i = 0; i < 10; i++)
        stage_run(stage_new(SIZE, rank_0_reports_and_ends), 1u << 0);
}

/* ---- Where the thread that serves the channel is held up ------------------------------------- */

static atomic_bool holds, held, let_go;

static void hold_the_thread(void)
{
    const double deadline = clock_now() + 20;
    atomic_store(&held, true);
    while (!atomic_load(&let_go) && clock_now() < deadline)
        clock_sleep(0.001);
}

/* Stands before libc's: the thread sleeps in it, without a lock. */
__attribute__((visibility("default"))) int epoll_wait(int set, struct epoll_event *events, int most,
                                                      int ms)
{
    const int count = epoll_pwait(set, events, most, ms, NULL);
    if (atomic_load(&holds))
        hold_the_thread();
    return count;
}

static ring_status rank_1_reports_unserved(stage *s, control_world **w)
{
    if ((*w)->rank != 1) {
        (void)verdict_within(*w, 30);
        return expect_verdict(*w, RING_ERR_ABORTED, "rank 1 has had enough");
    }
    atomic_store(&holds, true);
    while (!atomic_load(&held)) /* it beats soon */
        clock_sleep(0.001);
    const double began = clock_now();
    control_report(*w, RING_ERR_ABORTED, "rank 1 has had enough");
    atomic_store(&holds, false);
    atomic_store(&let_go, true);
    if (clock_now() - began > 15)
        return fail(RING_ERR_INTERNAL, "the report waited for the thread");
    return expect_verdict(*w, RING_ERR_ABORTED, "rank 1 has had enough");
}

static void a_report_returns_though_the_thread_is_held_up(void **state)
{
    set_number("RING_PEER_TIMEOUT", 60);
    stage_run(stage_new(SIZE, rank_1_reports_unserved), 0);
}

static void count_wake(void *wakes)
{
    ++*(int *)wakes;
}

static void a_long_text_is_cut(void **state)
{
    const ring_unique_id id = new_id();
    control_world *world;
    int wakes = 0;
    char text[2 * CONTROL_TEXT];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(join_by_id(&id, 1, 0, 1, &world), RING_OK);
    control_start(world, count_wake, &wakes);
    assert_int_equal(control_verdict(world), RING_OK);
    assert_string_equal(control_text(world), "");
    control_report(world, RING_ERR_ABORTED, text);
    assert_int_equal(control_verdict(world), RING_ERR_ABORTED);
    assert_int_equal(strlen(control_text(world)), CONTROL_TEXT - 1);
    assert_int_equal(wakes, 1);
    control_free(world);
}

/* ---- Suspicions -------------------------------------------------------------------- */

static ring_status rank_1_suspects_3(stage *s, control_world **w)
{
    const double start = clock_now();
    if ((*w)->rank == 1)
        control_suspect(*w, 3, "the link broke");
    RING_TRY(expect_verdict(*w, RING_ERR_PEER, "rank 3 ("));
    if ((*w)->rank == 1 && clock_now() - start < 0.25)
        return fail(RING_ERR_INTERNAL, "too hasty");
    return expect_verdict(*w, RING_ERR_PEER, "the link broke");
}

static void a_suspect_is_named_when_no_other_rank_is(void **state)
{
    stage_run(stage_new(SIZE, rank_1_suspects_3), 0);
}

static ring_status suspect_the_innocent(stage *s, control_world **w)
{
    if ((*w)->rank == 3)
        raise(SIGKILL);
    if ((*w)->rank == 1)
        control_suspect(*w, 2, "the link broke");
    return expect_verdict(*w, RING_ERR_PEER, "rank 3 (");
}

static void the_real_culprit_beats_a_suspicion(void **state)
{
    stage_run(stage_new(SIZE, suspect_the_innocent), 1u << 3);
}

static ring_status leave(control_world **w)
{
    const ring_status status = expect_verdict(*w, RING_OK, "");
    control_free(*w);
    *w = NULL;
    return status;
}

static ring_status suspect_without_rank_0(stage *s, control_world **w)
{
    if ((*w)->rank == 0)
        return leave(w);
    while (!control_left(*w, 0))
        clock_sleep(0.001);
    if ((*w)->rank == 2)
        return leave(w);
    control_suspect(*w, 2, "no data came");
    return expect_verdict(*w, RING_ERR_PEER, "rank 2 (");
}

static void without_rank_0_each_judges_for_itself(void **state)
{
    stage_run(stage_new(SIZE, suspect_without_rank_0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(busy_ranks_on_full_cores_are_never_taken_for_dead),
        TIMED_TEST(a_report_reaches_all_though_rank_0_ends_at_once),
        TIMED_TEST(a_report_returns_though_the_thread_is_held_up),
        TIMED_TEST(a_long_text_is_cut),
        TIMED_TEST(a_suspect_is_named_when_no_other_rank_is),
        TIMED_TEST(the_real_culprit_beats_a_suspicion),
        TIMED_TEST(without_rank_0_each_judges_for_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Watching over peers: who dies or stops is named on all; who is only busy never is. */
#include "ranks.h"

#include "control.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { SIZE = 4 };

/** Instructions for a rank of a test, and observations of all. */
typedef struct scene {
    ring_unique_id id;
    atomic_int up;      /* ranks that have started running            */
    atomic_int go;      /* set by the test: what is to be done, now    */
    double happened;    /* when it was done                            */
    double heard[SIZE]; /* when each rank had a verdict                */
    atomic_int wakes[SIZE];
    ring_status (*act)(struct scene *s, control_world *world, int rank);
} scene;

typedef struct waker {
    scene *scene;
    int rank;
} waker;

static void on_wake(void *context)
{
    const waker *w = context;
    atomic_fetch_add(&w->scene->wakes[w->rank], 1);
}

static ring_status verdict_of(control_world *world)
{
    const ring_status status = control_verdict(world);
    return status == RING_OK ? RING_OK : fail(status, "%s", control_text(world));
}

static ring_status wait_for_verdict(control_world *world, double seconds)
{
    const double deadline = clock_now() + seconds;
    while (control_verdict(world) == RING_OK && clock_now() < deadline)
        clock_sleep(0.001);
    return verdict_of(world);
}

static ring_status play(int rank, int size, void *context)
{
    scene *s = context;
    control_world *world;
    waker w = {s, rank};
    RING_TRY(join_by_id(&s->id, size, rank, 1, &world));
    control_start(world, on_wake, &w);
    atomic_fetch_add(&s->up, 1);
    while (atomic_load(&s->go) == 0)
        clock_sleep(0.001);
    const ring_status status = s->act(s, world, rank);
    s->heard[rank] = clock_now();
    control_leave(world);
    control_free(world);
    return status;
}

static scene *new_scene(ring_status (*act)(scene *s, control_world *world, int rank),
                        double peer_timeout)
{
    scene *s = shared_memory(sizeof *s);
    set_number("RING_INIT_TIMEOUT", 20);
    set_number("RING_PEER_TIMEOUT", peer_timeout);
    assert_int_equal(control_make_id(&s->id), RING_OK);
    s->act = act;
    return s;
}

static void wait_until_up(scene *s)
{
    while (atomic_load(&s->up) < SIZE)
        clock_sleep(0.001);
}

static void go(scene *s)
{
    s->happened = clock_now();
    atomic_store(&s->go, 1);
}

/* All ranks but `victim` say the same: `status`, and a text with `part`. */
static void assert_same(const crew *c, int victim, ring_status status, const char *part)
{
    const outcome *first = &c->outcomes[victim == 0 ? 1 : 0];
    for (int i = 0; i < SIZE; i++) {
        if (i == victim)
            continue;
        outcome_assert(&c->outcomes[i], status, part);
        assert_string_equal(c->outcomes[i].text, first->text);
    }
}

/* ---- Dead and stopped -------------------------------------------------------------- */

/* ---- Busy -------------------------------------------------------------------------- */

static atomic_bool rest;

static void *spin(void *unused)
{
    while (!atomic_load_explicit(&rest, memory_order_relaxed))
        continue;
    return unused;
}

static ring_status be_busy(scene *s, control_world *world, int rank)
{
    enum { SPINNERS = 4 };
    pthread_t threads[SPINNERS];
    (void)s;
    (void)rank;
    for (int i = 0; i < SPINNERS; i++)
        pthread_create(&threads[i], NULL, spin, NULL);
    const ring_status status = wait_for_verdict(world, 3);
    atomic_store(&rest, true);
    for (int i = 0; i < SPINNERS; i++)
        pthread_join(threads[i], NULL);
    return status;
}

static void busy_ranks_on_full_cores_are_never_taken_for_dead(void **state)
{
    (void)state;
    scene *s = new_scene(be_busy, 1.5);
    crew *c = crew_new(SIZE);
    go(s);
    crew_processes(c, SIZE, play, s);
    crew_assert_all(c, RING_OK);
    crew_free(c);
    shared_free(s, sizeof *s);
}

/* ---- Leaving in order -------------------------------------------------------------- */

/* ---- Reports ----------------------------------------------------------------------- */

/* As a program does that aborts and exits. */
static ring_status rank_0_reports_and_ends(scene *s, control_world *world, int rank)
{
    if (rank == 0) {
        control_report(world, RING_ERR_ABORTED, "rank 0 has had enough");
        _exit(0);
    }
    (void)s;
    return wait_for_verdict(world, 5);
}

static void run_threads(ring_status (*act)(scene *, control_world *, int), ring_status status,
                        const char *part)
{
    scene *s = new_scene(act, 15);
    crew *c = crew_new(SIZE);
    go(s);
    crew_threads(c, SIZE, play, s);
    assert_same(c, -1, status, part);
    for (int i = 0; i < SIZE; i++)
        assert_true(atomic_load(&s->wakes[i]) <= 1);
    crew_free(c);
    shared_free(s, sizeof *s);
}

static void a_report_reaches_all_though_rank_0_ends_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        scene *s = new_scene(rank_0_reports_and_ends, 15);
        crew *c = crew_new(SIZE);
        crew_fork(c, SIZE, play, s);
        wait_until_up(s);
        go(s);
        crew_wait(c);
        assert_same(c, 0, RING_ERR_ABORTED, "rank 0 has had enough");
        crew_free(c);
        shared_free(s, sizeof *s);
    }
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

static ring_status rank_1_reports_unserved(scene *s, control_world *world, int rank)
{
    (void)s;
    if (rank != 1)
        return wait_for_verdict(world, 30);
    atomic_store(&holds, true);
    while (!atomic_load(&held)) /* it beats soon */
        clock_sleep(0.001);
    const double began = clock_now();
    control_report(world, RING_ERR_ABORTED, "rank 1 has had enough");
    atomic_store(&holds, false);
    atomic_store(&let_go, true);
    if (clock_now() - began > 15)
        return fail(RING_ERR_INTERNAL, "the report waited for the thread");
    return verdict_of(world);
}

static void a_report_returns_though_the_thread_is_held_up(void **state)
{
    (void)state;
    scene *s = new_scene(rank_1_reports_unserved, 60);
    crew *c = crew_new(SIZE);
    go(s);
    crew_processes(c, SIZE, play, s);
    assert_same(c, -1, RING_ERR_ABORTED, "rank 1 has had enough");
    crew_free(c);
    shared_free(s, sizeof *s);
}

static void a_long_text_is_cut(void **state)
{
    (void)state;
    ring_unique_id id;
    control_world *world;
    scene s;
    waker w = {&s, 0};
    char text[2 * CONTROL_TEXT];
    memset(&s, 0, sizeof s);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    assert_int_equal(control_make_id(&id), RING_OK);
    assert_int_equal(join_by_id(&id, 1, 0, 1, &world), RING_OK);
    control_start(world, on_wake, &w);
    assert_int_equal(control_verdict(world), RING_OK);
    assert_string_equal(control_text(world), "");
    control_report(world, RING_ERR_ABORTED, text);
    assert_int_equal(control_verdict(world), RING_ERR_ABORTED);
    assert_int_equal(strlen(control_text(world)), CONTROL_TEXT - 1);
    assert_int_equal(atomic_load(&s.wakes[0]), 1);
    control_leave(world);
    control_free(world);
}

/* ---- Suspicions -------------------------------------------------------------------- */

static ring_status rank_1_suspects_3(scene *s, control_world *world, int rank)
{
    (void)s;
    const double start = clock_now();
    if (rank == 1)
        control_suspect(world, 3, "the link broke");
    const ring_status status = wait_for_verdict(world, 5);
    if (rank == 1 && clock_now() - start < 0.25)
        return fail(RING_ERR_INTERNAL, "too hasty");
    return status;
}

static void a_suspect_is_named_when_nobody_else_is(void **state)
{
    (void)state;
    run_threads(rank_1_suspects_3, RING_ERR_PEER, "rank 3 (");
    run_threads(rank_1_suspects_3, RING_ERR_PEER, "the link broke");
}

static ring_status suspect_the_innocent(scene *s, control_world *world, int rank)
{
    (void)s;
    if (rank == 3)
        raise(SIGKILL);
    if (rank == 1)
        control_suspect(world, 2, "the link broke");
    return wait_for_verdict(world, 5);
}

static void the_real_culprit_beats_a_suspicion(void **state)
{
    (void)state;
    scene *s = new_scene(suspect_the_innocent, 15);
    crew *c = crew_new(SIZE);
    crew_fork(c, SIZE, play, s);
    wait_until_up(s);
    go(s);
    crew_wait(c);
    assert_same(c, 3, RING_ERR_PEER, "rank 3 (");
    crew_free(c);
    shared_free(s, sizeof *s);
}

static ring_status suspect_without_rank_0(scene *s, control_world *world, int rank)
{
    if (rank == 0)
        return verdict_of(world); /* leaves */
    while (!control_left(world, 0))
        clock_sleep(0.001);
    if (rank == 2)
        return verdict_of(world);
    (void)s;
    control_suspect(world, 2, "no data came");
    return wait_for_verdict(world, 5);
}

static void without_rank_0_each_judges_for_itself(void **state)
{
    (void)state;
    scene *s = new_scene(suspect_without_rank_0, 15);
    crew *c = crew_new(SIZE);
    crew_fork(c, SIZE, play, s);
    wait_until_up(s);
    go(s);
    crew_wait(c);
    outcome_assert(&c->outcomes[0], RING_OK, "");
    outcome_assert(&c->outcomes[1], RING_ERR_PEER, "rank 2 (");
    outcome_assert(&c->outcomes[2], RING_OK, "");
    outcome_assert(&c->outcomes[3], RING_ERR_PEER, "rank 2 (");
    crew_free(c);
    shared_free(s, sizeof *s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(busy_ranks_on_full_cores_are_never_taken_for_dead),
        cmocka_unit_test(a_report_reaches_all_though_rank_0_ends_at_once),
        cmocka_unit_test(a_report_returns_though_the_thread_is_held_up),
        cmocka_unit_test(a_long_text_is_cut),
        cmocka_unit_test(a_suspect_is_named_when_nobody_else_is),
        cmocka_unit_test(the_real_culprit_beats_a_suspicion),
        cmocka_unit_test(without_rank_0_each_judges_for_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

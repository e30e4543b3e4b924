/* SPDX-License-Identifier: Apache-2.0
 * Cases of shrinking after ranks died, were stopped, or do not call. RING_TEST_LONG=1 kills each
 * rank ten times as often. */
#include "control_thread.h"
#include "stage.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Three levels: rank 0; 1-4; 5. */
enum { SIZE = 6 };

static unsigned without(unsigned dead)
{
    return ((1u << SIZE) - 1u) & ~dead;
}

static void remember(void *context, int rank, const control_statement *statement)
{
    atomic_fetch_or((atomic_int *)context, 1 << rank);
}

/* Its ranks are those in `bits` in their order, and hear each other. */
static ring_status try_out(control_world *w, unsigned bits, int before)
{
    atomic_int heard = 0;
    const int all = (1 << w->size) - 1;
    int rank = 0;
    for (int r = 0; r < before; r++)
        rank += (bits & 1u << r) != 0;
    if (w->size != __builtin_popcount(bits) || w->rank != rank)
        return fail(RING_ERR_INTERNAL, "rank %d of %d, wanted %d of %d", w->rank, w->size, rank,
                    __builtin_popcount(bits));
    const double deadline = clock_now() + 5;
    control_set_statement_sink(w, remember, &heard);
    control_state(w, &(control_statement){.peer = -1, .refused = 1});
    while (atomic_load(&heard) != (all & ~(1 << rank)) && clock_now() < deadline)
        clock_sleep(0.0005);
    control_set_statement_sink(w, NULL, NULL);
    if (atomic_load(&heard) != (all & ~(1 << rank)))
        return fail(RING_ERR_INTERNAL, "rank %d heard %#x", rank, (unsigned)atomic_load(&heard));
    return expect_verdict(w, RING_OK, "");
}

/* *w becomes what is left of it. */
static ring_status shrink(control_world **w, unsigned bits, double seconds)
{
    control_world *next;
    const int rank = (*w)->rank;
    RING_TRY(expect_verdict(*w, RING_ERR_PEER, "was lost"));
    RING_TRY(control_shrink(*w, clock_now() + seconds, &next));
    control_free(*w);
    *w = next;
    return try_out(next, bits, rank);
}

/* ---- Deaths ------------------------------------------------------------------------ */

static void *end_soon(void *unused)
{
    clock_sleep(0.2);
    raise(SIGKILL);
    return unused;
}

static void await_death(const control_world *w, int rank)
{
    const double deadline = clock_now() + 20;
    while (!process_is_dead((pid_t)w->cards[rank].pid) && clock_now() < deadline)
        clock_sleep(0.002);
}

/* The only one that has called, with a short deadline, dies; nothing is decided by that. */
static ring_status vote_and_die(stage *s, control_world **w)
{
    control_world *out;
    const int rank = (*w)->rank;
    pthread_t thread;
    if (rank == 5)
        raise(SIGKILL);
    if (rank == 4) {
        RING_TRY(expect_verdict(*w, RING_ERR_PEER, "rank 5 ("));
        pthread_create(&thread, NULL, end_soon, NULL);
        (void)control_shrink(*w, clock_now() + 1.5, &out);
    }
    await_death(*w, 4);
    clock_sleep(1.5); /* its deadline is over */
    RING_TRY(shrink(w, without(1u << 5 | 1u << 4), 20));
    return stage_meet(s, 1, SIZE - 2);
}

static void a_vote_of_the_dead_decides_nothing(void **state)
{
    stage_run(stage_new(SIZE, vote_and_die), 1u << 5 | 1u << 4);
}

static ring_status shrink_twice(stage *s, control_world **w)
{
    const int rank = (*w)->rank;
    if (rank == 5)
        raise(SIGKILL);
    RING_TRY(shrink(w, without(1u << 5), 20));
    RING_TRY(stage_meet(s, 1, SIZE - 1));
    if (rank == 0)
        raise(SIGKILL);
    RING_TRY(shrink(w, 0x1e, 20)); /* of its five ranks all but the first */
    return stage_meet(s, 2, SIZE - 2);
}

static void what_was_shrunk_is_shrunk_again(void **state)
{
    for (int i = 0; i < 3; i++)
        stage_run(stage_new(SIZE, shrink_twice), 1u << 5 | 1);
}

/* ---- Who does not call ------------------------------------------------------------- */

static ring_status come_too_late(stage *s, control_world *w)
{
    control_world *out;
    RING_TRY(stage_meet(s, 1, SIZE));
    const ring_status status = control_shrink(w, clock_now() + 5, &out);
    if (status != RING_ERR_PEER || strstr(fail_text(), "is excluded") == NULL)
        return fail(RING_ERR_INTERNAL, "it got %d: %s", (int)status, fail_text());
    return RING_OK;
}

static ring_status call_or_not(stage *s, control_world **w)
{
    if ((*w)->rank == 5)
        control_report(*w, RING_ERR_PEER, "rank 5 says that somebody was lost");
    if ((*w)->rank == s->victim)
        return come_too_late(s, *w);
    RING_TRY(expect_verdict(*w, RING_ERR_PEER, "was lost"));
    RING_TRY(stage_meet(s, 2, SIZE - 1)); /* so that all of these call by the first's deadline */
    RING_TRY(shrink(w, without(1u << s->victim), 1.5));
    return stage_meet(s, 1, SIZE);
}

static void who_has_not_called_by_the_deadline_is_out(void **state)
{
    for (int victim = 0; victim < SIZE; victim += 2) {
        stage *s = stage_new(SIZE, call_or_not);
        s->victim = victim;
        stage_run(s, 0);
    }
}

/* Rank 0 frees it, but lives on in another one: nobody waits for it. */
static ring_status free_instead(stage *s, control_world **w)
{
    control_world *all, *mine = *w;
    RING_TRY(derive_bits(*w, s->ids[0], without(0), &all));
    *w = all;
    control_report(mine, RING_ERR_PEER, "somebody was lost");
    const double start = clock_now();
    if (mine->rank == 0)
        control_free(mine);
    else
        RING_TRY(shrink(&mine, without(1), 200));
    if (clock_now() - start > seconds_allowed(10))
        return fail(RING_ERR_INTERNAL, "it took %.1f s", clock_now() - start);
    if (all->rank != 0)
        control_free(mine);
    return stage_meet(s, 1, SIZE);
}

static void who_frees_the_broken_one_is_not_waited_for(void **state)
{
    stage_run(stage_new(SIZE, free_instead), 0);
}

/* ---- Who is stopped ---------------------------------------------------------------- */

/* Plays `act` and stops the victims; kills them once `go` is set. */
static void run_stopped(ring_status (*act)(stage *s, control_world **w), unsigned stopped)
{
    set_number("RING_PEER_TIMEOUT", 1);
    stage *s = stage_new(SIZE, act);
    crew *c = crew_new(SIZE);
    s->victim = (int)stopped;
    crew_fork(c, SIZE, stage_play, s);
    while (atomic_load(&s->arrived[1]) < SIZE)
        clock_sleep(0.001);
    for (int r = 0; r < SIZE; r++)
        if (stopped & 1u << r)
            kill(c->pids[r], SIGSTOP);
    const double deadline = clock_now() + 15;
    while (!atomic_load(&s->go) && clock_now() < deadline)
        clock_sleep(0.001);
    for (int r = 0; r < SIZE; r++)
        if (stopped & 1u << r)
            kill(c->pids[r], SIGKILL);
    crew_wait(c);
    stage_end(s, c, stopped);
}

/* Ranks that wait for their end; they do not come further. */
static ring_status be_stopped(void)
{
    clock_sleep(20);
    return RING_OK;
}

/* Again and again, until it is gone. */
static ring_status shrink_when_gone(stage *s, control_world **w, unsigned left, const char *part)
{
    control_world *out;
    const int rank = (*w)->rank;
    const double deadline = clock_now() + 15;
    ring_status status = control_shrink(*w, clock_now() + 10, &out);
    if (status != RING_ERR_PEER || strstr(fail_text(), part) == NULL)
        return fail(RING_ERR_INTERNAL, "wanted \"%s\", got %d: %s", part, (int)status, fail_text());
    RING_TRY(stage_meet(s, 2, __builtin_popcount(left)));
    atomic_store(&s->go, true);
    while (status == RING_ERR_PEER && clock_now() < deadline)
        status = control_shrink(*w, clock_now() + 10, &out);
    RING_TRY(status);
    control_free(*w);
    *w = out;
    RING_TRY(try_out(out, left, rank));
    return stage_meet(s, 3, __builtin_popcount(left));
}

static ring_status await_losses(stage *s, control_world *w)
{
    RING_TRY(stage_meet(s, 1, SIZE));
    if (s->victim & 1 << w->rank)
        return be_stopped();
    return expect_verdict(w, RING_ERR_PEER, "no sign of life");
}

static ring_status wait_for_the_end_of_one(stage *s, control_world **w)
{
    RING_TRY(await_losses(s, *w));
    return shrink_when_gone(s, w, without((unsigned)s->victim), "is stopped, but has not ended");
}

static void a_stopped_rank_of_this_host_has_to_end_first(void **state)
{
    run_stopped(wait_for_the_end_of_one, 1u << 2);
    run_stopped(wait_for_the_end_of_one, 1u << 0);
}

/* As if each rank had a host of its own. The control thread reads the cards meanwhile. */
static void scatter(control_world *w)
{
    control_lock();
    for (int r = 0; r < w->size; r++)
        w->cards[r].host[0] = (unsigned char)r;
    control_unlock();
}

static ring_status go_on_by_majority(stage *s, control_world **w)
{
    scatter(*w);
    RING_TRY(await_losses(s, *w));
    RING_TRY(shrink(w, without((unsigned)s->victim), 10));
    RING_TRY(stage_meet(s, 2, (*w)->size));
    atomic_store(&s->go, true);
    return RING_OK;
}

static ring_status go_on_without_majority(stage *s, control_world **w)
{
    scatter(*w);
    RING_TRY(await_losses(s, *w));
    return shrink_when_gone(s, w, without((unsigned)s->victim), "which is not a majority");
}

static void silent_ranks_elsewhere_are_left_out_by_a_majority_only(void **state)
{
    run_stopped(go_on_by_majority, 1u << 1);
    run_stopped(go_on_without_majority, 1u << 1 | 1u << 2 | 1u << 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(a_vote_of_the_dead_decides_nothing),
        TIMED_TEST(what_was_shrunk_is_shrunk_again),
        TIMED_TEST(who_has_not_called_by_the_deadline_is_out),
        TIMED_TEST(who_frees_the_broken_one_is_not_waited_for),
        TIMED_TEST(a_stopped_rank_of_this_host_has_to_end_first),
        TIMED_TEST(silent_ranks_elsewhere_are_left_out_by_a_majority_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

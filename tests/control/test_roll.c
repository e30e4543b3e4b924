/* SPDX-License-Identifier: Apache-2.0
 * Cases of rolls: ranks are missing, leave, stop or die, and all ranks of a round get one answer.
 */
#include "bulletin.h"
#include "membership_state.h"
#include "stage.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Three levels: rank 0; 1-4; 5. */
enum { SIZE = 6, LONG = 1000 };

/* @return the round's answer, and fails unless @p who (bits) had come. */
static ring_status meet(control_world *w, double seconds, unsigned *who)
{
    bool came[SIZE];
    const ring_status status = control_meet(w, clock_now() + seconds, came);
    *who = 0;
    for (int r = 0; r < w->size; r++)
        *who |= came[r] ? 1u << r : 0;
    return status;
}

static ring_status expect_meeting(control_world *w, double seconds, ring_status want, unsigned bits)
{
    unsigned who;
    const ring_status status = meet(w, seconds, &who);
    return status == want && who == bits
               ? RING_OK
               : fail(RING_ERR_INTERNAL, "rank %d: %s, %#x came, wanted %s, %#x", w->rank,
                      ring_status_string(status), who, ring_status_string(want), bits);
}

/* ---- Rounds ------------------------------------------------------------------------ */

static ring_status meet_many_times(stage *s, control_world **w)
{
    control_world *odd;
    for (int i = 0; i < 50; i++)
        RING_TRY(expect_meeting(*w, LONG, RING_OK, 0x3f));
    if ((*w)->rank % 2 == 0)
        return stage_meet(s, 1, SIZE);
    RING_TRY(derive_bits(*w, 1u << 30, 0x2a, &odd)); /* rank 0, which closes, is not in it */
    ring_status status = RING_OK;
    for (int i = 0; i < 50 && status == RING_OK; i++)
        status = expect_meeting(odd, LONG, RING_OK, 0x7);
    control_free(odd);
    RING_TRY(status);
    return stage_meet(s, 1, SIZE);
}

static void all_come_again_and_again(void **state)
{
    stage_run(stage_new(SIZE, meet_many_times), 0);
}

/* Rank 5 asks without waiting until rank 4 waits: both get the same answer. Rank 4 ignores a round
 * that it was not in. */
static ring_status come_late(stage *s, control_world **w)
{
    unsigned who = 0;
    ring_status status = RING_IN_PROGRESS;
    const int rank = (*w)->rank;
    while (rank == 5 && status == RING_IN_PROGRESS && who != 0x30)
        status = meet(*w, 0, &who);
    if (rank == 4)
        status = meet(*w, LONG, &who);
    if (rank >= 4 && (status != RING_IN_PROGRESS || who != 0x30))
        return fail(RING_ERR_INTERNAL, "%s, %#x", ring_status_string(status), who);
    RING_TRY(stage_meet(s, 1, SIZE));
    RING_TRY(expect_meeting(*w, LONG, RING_OK, 0x3f));
    return stage_meet(s, 2, SIZE);
}

static void those_in_a_round_have_one_answer(void **state)
{
    stage_run(stage_new(SIZE, come_late), 0);
}

/* ---- The rank that closes ------------------------------------------------------------- */

/* Rank 0 goes; it closes rounds of a communicator that it is not in. The last one comes when it is
 * gone. */
static ring_status leave_or_die(stage *s, control_world **w, bool dies)
{
    control_world *some;
    const int rank = (*w)->rank;
    if (rank == 0) {
        RING_TRY(stage_meet(s, 1, SIZE));
        if (dies)
            raise(SIGKILL);
        control_free(*w);
        *w = NULL;
        return RING_OK;
    }
    RING_TRY(derive_bits(*w, 1u << 30, 0x3e, &some));
    RING_TRY(stage_meet(s, 1, SIZE));
    if (rank == 5 && dies)
        RING_TRY(expect_verdict(*w, RING_ERR_PEER, "rank 0"));
    while (rank == 5 && !dies && !control_left(*w, 0))
        clock_sleep(0.001);
    ring_status status = expect_meeting(some, LONG, RING_OK, 0x1f);
    if (status == RING_OK)
        status = expect_meeting(some, LONG, RING_OK, 0x1f);
    control_free(some);
    RING_TRY(status);
    return stage_meet(s, 2, SIZE - 1);
}

static ring_status leave(stage *s, control_world **w)
{
    return leave_or_die(s, w, false);
}

static ring_status die(stage *s, control_world **w)
{
    return leave_or_die(s, w, true);
}

static void the_next_one_closes_when_it_leaves_or_dies(void **state)
{
    for (int i = 0; i < 3; i++) {
        stage_run(stage_new(SIZE, leave), 0);
        stage_run(stage_new(SIZE, die), 1);
    }
}

/* ---- One that dies or stops ------------------------------------------------------------- */

static ring_status lose_one(stage *s, control_world **w)
{
    unsigned who;
    const int rank = (*w)->rank;
    RING_TRY(stage_meet(s, 1, SIZE));
    if (rank == s->victim)
        raise(SIGKILL);
    const ring_status status = meet(*w, LONG, &who);
    if (status != RING_ERR_PEER || strstr(fail_text(), "was lost") == NULL)
        return fail(RING_ERR_INTERNAL, "%s: %s", ring_status_string(status), fail_text());
    return stage_meet(s, 2, SIZE - 1);
}

static void a_lost_rank_ends_it_for_all(void **state)
{
    for (int victim = 0; victim < SIZE; victim++) {
        stage *s = stage_new(SIZE, lose_one);
        s->victim = victim;
        stage_run(s, 1u << victim);
    }
}

/* All but the victim come while it is stopped, then all. */
static ring_status come_without(stage *s, control_world **w, double seconds)
{
    const int rank = (*w)->rank;
    RING_TRY(stage_meet(s, 1, SIZE));
    while (!atomic_load(&s->go))
        clock_sleep(0.0005);
    if (rank != s->victim) {
        RING_TRY(expect_meeting(*w, seconds, RING_IN_PROGRESS, 0x3fu & ~(1u << s->victim)));
        RING_TRY(stage_meet(s, 2, SIZE - 1));
    }
    while (atomic_load(&s->arrived[2]) < SIZE - 1)
        clock_sleep(0.0005);
    RING_TRY(expect_meeting(*w, LONG, RING_OK, 0x3f));
    return stage_meet(s, 3, SIZE);
}

static ring_status come_around(stage *s, control_world **w)
{
    return come_without(s, w, 3);
}

static ring_status come_before(stage *s, control_world **w)
{
    return come_without(s, w, 0.5);
}

/* Stops the victim; it goes on when the others have come so far, or after a while. */
static void run_stopped(ring_status (*act)(stage *s, control_world **w), int victim,
                        double patience)
{
    stage *s = stage_new(SIZE, act);
    crew *c = crew_new(SIZE);
    s->victim = victim;
    crew_fork(c, SIZE, stage_play, s);
    while (atomic_load(&s->arrived[1]) < SIZE)
        clock_sleep(0.001);
    kill(c->pids[victim], SIGSTOP);
    atomic_store(&s->go, true);
    const double deadline = clock_now() + patience;
    while (atomic_load(&s->arrived[2]) < SIZE - 1 && clock_now() < deadline)
        clock_sleep(0.001);
    kill(c->pids[victim], SIGCONT);
    crew_wait(c);
    stage_end(s, c, 0);
}

/* Rank 5 speaks through rank 1. */
static void calls_come_around_one_that_is_stopped(void **state)
{
    run_stopped(come_around, 1, 12);
}

/* No other rank closes the round meanwhile, so that there is one answer. */
static void the_answer_waits_for_a_rank_0_that_is_stopped(void **state)
{
    run_stopped(come_before, 0, 1.5);
}

enum { ALL = -1 };

/* @return the kept notes of this communicator, of one round or ALL, and of one rank or ALL. */
static int count_notes(const control_world *w, enum control_kind kind, int round, int rank)
{
    const membership *m = group_of((control_world *)(uintptr_t)w)->member;
    int found = 0;
    control_lock();
    const bulletin *b = &m->bulletins[BULLETIN_LASTING];
    for (int i = 0; i < b->count; i++) {
        const control_message *note = &b->notes[i];
        found += note->kind == kind && note->communicator == w->id &&
                 (round == ALL || note->count == round) && (rank == ALL || note->rank == rank);
    }
    control_unlock();
    return found;
}

/* Rank 0 resumes after the others have found that it is lost, and while they make lists. */
static ring_status go_on_without(stage *s, control_world **w)
{
    static const int ranks[] = {1, 2, 3, 4, 5};
    enum { LISTS = 8 };
    RING_TRY(stage_meet(s, 1, SIZE));
    while (!atomic_load(&s->go))
        clock_sleep(0.0005);
    if ((*w)->rank != s->victim) {
        RING_TRY(expect_verdict(*w, RING_ERR_PEER, "rank 0"));
        RING_TRY(stage_meet(s, 2, SIZE - 1));
    }
    for (int i = 0; i < LISTS && (*w)->rank != s->victim; i++) {
        uint64_t id;
        const control_list list = {.ranks = ranks,
                                   .count = SIZE - 1,
                                   .tag = i,
                                   .despite_end = true,
                                   .deadline = clock_now() + LONG};
        RING_TRY(control_agree_id(*w, &list, &id));
        clock_sleep(0.05); /* so that rank 0 takes part in some of them */
    }
    RING_TRY(stage_meet(s, 3, SIZE));
    const int found = count_notes(*w, CONTROL_ROLL, ALL, ALL) -
                      count_notes(*w, CONTROL_ROLL, ALL, 1);
    return found == 0 ? stage_meet(s, 4, SIZE)
                      : fail(RING_ERR_INTERNAL, "rank %d: %d rounds were not closed by rank 1",
                             (*w)->rank, found);
}

static void a_lost_rank_0_that_resumes_closes_no_rounds(void **state)
{
    setenv("RING_PEER_TIMEOUT", "3", 1);
    run_stopped(go_on_without, 0, 12);
    set_timeouts(state);
}

/* ---- Notes that are under way when a round ends -------------------------------------------- */

/* A rank that hangs with control's lock ends so long after all others are through. */
enum { HANGS = 90 };

static void await_notes(const control_world *w, enum control_kind kind, int round, int count)
{
    while (count_notes(w, kind, round, ALL) < count)
        clock_sleep(0.0005);
}

/* As if it had been said before this rank heard of the round's end. */
static void come_to_barrier(control_world *w, int round)
{
    membership *m = group_of(w)->member;
    control_message note;
    control_message_begin(&note, CONTROL_PRESENT, m->world.rank);
    note.communicator = w->id;
    note.count = round;
    note.body.roll.wanted = w->size;
    control_lock();
    bulletin_post(m, &note);
    control_unlock();
}

/* Rank 0, which closes, is not in the communicator, and hears of rank 2 when the round is over. */
static ring_status be_late(stage *s, control_world **w)
{
    control_world *pair = NULL;
    ring_status status = RING_OK;
    const int rank = (*w)->rank;
    alarm(HANGS);
    if (rank == 1 || rank == 2)
        RING_TRY(derive_bits(*w, 1u << 30, 0x6, &pair));
    for (int round = 1; round < 6 && status == RING_OK; round += 2) {
        if (rank == 1)
            status = expect_meeting(pair, 0, RING_IN_PROGRESS, 0x1);
        if (rank == 2) {
            await_notes(pair, CONTROL_ROLL, round, 1);
            come_to_barrier(pair, round);
        }
        if (status == RING_OK)
            status = expect_meeting(*w, LONG, RING_OK, 0x3f);
        if (status == RING_OK && pair != NULL)
            status = expect_meeting(pair, LONG, RING_OK, 0x3);
    }
    control_free(pair);
    RING_TRY(status);
    return stage_meet(s, 1, SIZE);
}

static void a_late_note_opens_no_round_again(void **state)
{
    stage_run(stage_new(SIZE, be_late), 0);
}

/* All but rank 5 wait, which is in their list and ends the communicator: each of them complains. */
static ring_status end_while_they_wait(control_world *some, int rank)
{
    static const int ranks[] = {0, 1, 2, 3, 4};
    const control_list list = {.ranks = ranks, .count = 5, .deadline = clock_now() + LONG};
    uint64_t id;
    if (rank == 5) {
        await_notes(some, CONTROL_PRESENT, 1, 4);
        control_propose(some, RING_ERR_ABORTED, "enough");
        return expect_verdict(some, RING_ERR_ABORTED, "enough");
    }
    const ring_status status = control_agree_id(some, &list, &id);
    if (status == RING_ERR_ABORTED && strstr(fail_text(), "enough") != NULL)
        return RING_OK;
    return fail(RING_ERR_INTERNAL, "%s: %s", ring_status_string(status), fail_text());
}

static ring_status complain_together(stage *s, control_world **w)
{
    ring_status status = RING_OK;
    const int rank = (*w)->rank;
    alarm(HANGS);
    for (uint64_t i = 0; i < 5 && status == RING_OK; i++) {
        control_world *some = NULL;
        if (rank > 0)
            RING_TRY(derive_bits(*w, 1u << 30 | i, 0x3e, &some));
        if (rank > 0)
            status = end_while_they_wait(some, rank);
        if (status == RING_OK)
            status = expect_meeting(*w, LONG, RING_OK, 0x3f);
        control_free(some);
    }
    RING_TRY(status);
    return stage_meet(s, 1, SIZE);
}

static void several_may_complain_of_a_round(void **state)
{
    stage_run(stage_new(SIZE, complain_together), 0);
}

/* ---- Threads of a rank ----------------------------------------------------------------------- */

static void *meet_for_long(void *context)
{
    return (void *)(uintptr_t)expect_meeting(context, LONG, RING_IN_PROGRESS, 0x20);
}

/* The second thread of rank 5 asks for the end of the round that the first one waits in. */
static ring_status meet_in_two_threads(control_world *w)
{
    pthread_t thread;
    void *first;
    if (pthread_create(&thread, NULL, meet_for_long, w) != 0)
        return fail(RING_ERR_SYSTEM, "no thread");
    await_notes(w, CONTROL_PRESENT, 1, 1);
    const ring_status second = expect_meeting(w, 0.05, RING_IN_PROGRESS, 0x20);
    if (second != RING_OK)
        control_propose(w, RING_ERR_ABORTED, fail_text()); /* for the first one */
    pthread_join(thread, &first);
    RING_TRY(second);
    return first == NULL ? RING_OK
                         : fail(RING_ERR_INTERNAL, "the thread that came first has another answer");
}

static ring_status come_twice(stage *s, control_world **w)
{
    if ((*w)->rank == 5)
        RING_TRY(meet_in_two_threads(*w));
    RING_TRY(stage_meet(s, 1, SIZE));
    RING_TRY(expect_meeting(*w, LONG, RING_OK, 0x3f));
    return stage_meet(s, 2, SIZE);
}

static void the_earliest_deadline_of_a_ranks_threads_ends_it(void **state)
{
    stage_run(stage_new(SIZE, come_twice), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_come_again_and_again),
        cmocka_unit_test(those_in_a_round_have_one_answer),
        cmocka_unit_test(the_next_one_closes_when_it_leaves_or_dies),
        cmocka_unit_test(a_lost_rank_ends_it_for_all),
        cmocka_unit_test(calls_come_around_one_that_is_stopped),
        cmocka_unit_test(the_answer_waits_for_a_rank_0_that_is_stopped),
        cmocka_unit_test(a_lost_rank_0_that_resumes_closes_no_rounds),
        cmocka_unit_test(a_late_note_opens_no_round_again),
        cmocka_unit_test(several_may_complain_of_a_round),
        cmocka_unit_test(the_earliest_deadline_of_a_ranks_threads_ends_it),
    };
    return cmocka_run_group_tests(tests, set_timeouts, NULL);
}

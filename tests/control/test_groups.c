/* SPDX-License-Identifier: Apache-2.0
 *
 * Communicators of one membership: their shared connections, ends of one but not of the others,
 * events from before they are made, and statements of ranks in them.
 */
#include "stage.h"

#include "bulletin.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Three levels: rank 0; 1-4; 5-8. */
enum { SIZE = 9, MANY = STAGE_IDS, EVENS = 0x155, ODDS = 0x0aa, ALL = 0x1ff, LEAVES = 0x1e0 };

static bool has(unsigned bits, int rank)
{
    return (bits & 1u << rank) != 0;
}

static int count_bits(unsigned bits)
{
    return __builtin_popcount(bits);
}

/* ---- Sharing ----------------------------------------------------------------------- */

/* Of all sizes; rank 0 is in most, rank 8 in few. */
static unsigned subset(int i)
{
    return ((unsigned)i * 2654435761u >> 7 | 3u) & ALL;
}

static ring_status derive_all(stage *s, control_world *w, control_world **worlds)
{
    for (int i = 0; i < MANY; i++) {
        worlds[i] = NULL;
        if (!has(subset(i), w->rank))
            continue;
        RING_TRY(derive_bits(w, s->ids[i], subset(i), &worlds[i]));
        control_start(worlds[i], no_wake, NULL);
        const control_world *new = worlds[i];
        if (new->id != s->ids[i] || new->size != count_bits(subset(i)) ||
            new->cards[new->rank].rank != w->rank)
            return fail(RING_ERR_INTERNAL, "communicator %d is not what it should be", i);
    }
    return RING_OK;
}

static ring_status only_this_one_ends(control_world **worlds, int ended)
{
    for (int i = 0; i < MANY; i++)
        if (worlds[i] != NULL)
            RING_TRY(expect_verdict(worlds[i], i == ended ? RING_ERR_ABORTED : RING_OK,
                                    i == ended ? "of number 7" : ""));
    return RING_OK;
}

static ring_status derive_many(stage *s, control_world **w)
{
    control_world *worlds[MANY];
    const int fds = count_fds(), threads = count_threads(); /* the start's may still be closing */
    const control_counts before = control_count(*w);
    RING_TRY(derive_all(s, *w, worlds));
    const control_counts after = control_count(worlds[0] != NULL ? worlds[0] : *w);
    if (count_fds() > fds || count_threads() > threads || after.connections != before.connections ||
        after.messages > before.messages + 20)
        return fail(RING_ERR_INTERNAL,
                    "64 communicators cost %d descriptors, %d threads, %d messages",
                    count_fds() - fds, count_threads() - threads,
                    (int)(after.messages - before.messages));
    RING_TRY(stage_meet(s, 1, SIZE));
    if ((*w)->rank == 1)
        control_report(worlds[7], RING_ERR_ABORTED, "the end of number 7");
    if (worlds[7] != NULL)
        RING_TRY(expect_verdict(worlds[7], RING_ERR_ABORTED, "of number 7"));
    RING_TRY(stage_meet(s, 2, SIZE));
    RING_TRY(only_this_one_ends(worlds, 7));
    RING_TRY(expect_verdict(*w, RING_OK, ""));
    for (int i = 0; i < MANY; i++)
        control_free(worlds[i]);
    return stage_meet(s, 3, SIZE);
}

static void many_communicators_share_sockets_and_thread(void **state)
{
    stage_run(stage_new(SIZE, derive_many), 0);
}

/* The start's communicator goes first; the rest lives on until its own end. */
static ring_status outlive_the_first(stage *s, control_world **w)
{
    control_world *evens = NULL, *all;
    const int rank = (*w)->rank;
    RING_TRY(derive_bits(*w, s->ids[0], ALL, &all));
    if (has(EVENS, rank))
        RING_TRY(derive_bits(*w, s->ids[1], EVENS, &evens));
    control_free(*w);
    *w = all;
    RING_TRY(stage_meet(s, 1, SIZE));
    if (rank == 6)
        control_report(evens, RING_ERR_TIMEOUT, "rank 6 waited too long");
    if (evens != NULL)
        RING_TRY(expect_verdict(evens, RING_ERR_TIMEOUT, "rank 6 waited too long"));
    RING_TRY(stage_meet(s, 2, SIZE));
    control_free(evens);
    return expect_verdict(all, RING_OK, "");
}

static void the_last_communicator_ends_the_membership(void **state)
{
    stage_run(stage_new(SIZE, outlive_the_first), 0);
}

static void count_wake(void *context)
{
    ++*(int *)context;
}

static void a_rank_alone_derives_reports_and_shrinks(void **state)
{
    ring_unique_id id = new_id();
    control_world *w, *derived, *shrunk;
    const int zero = 0, one = 1;
    int wakes = 0;
    assert_int_equal(join_by_id(&id, 1, 0, 1, &w), RING_OK);
    control_start(w, no_wake, NULL);
    const uint64_t first = control_new_id(w), second = control_new_id(w);
    assert_true(first != 0 && second != 0 && first != second);
    assert_int_equal(control_derive(w, first, &one, 1, &derived), RING_ERR_ARGUMENT);
    assert_int_equal(control_derive(w, first, &zero, 0, &derived), RING_ERR_ARGUMENT);
    assert_int_equal(control_derive(w, 0, &zero, 1, &derived), RING_ERR_USAGE);
    assert_int_equal(control_derive(w, first, &zero, 1, &derived), RING_OK);
    assert_int_equal(control_shrink(derived, clock_now() + 1, &shrunk), RING_ERR_USAGE);
    control_report(derived, RING_ERR_ABORTED, "enough");
    control_start(derived, count_wake, &wakes);
    assert_int_equal(wakes, 1);
    assert_int_equal(control_verdict(w), RING_OK);
    assert_int_equal(control_shrink(derived, clock_now() + 1, &shrunk), RING_OK);
    assert_int_equal(control_verdict(shrunk), RING_OK);
    control_free(w);
    control_free(derived);
    control_free(shrunk);
}

/* ---- Verdicts ---------------------------------------------------------------------- */

/* Both leaves hang on other ranks, which are not in it. */
static ring_status end_a_pair(stage *s, control_world **w)
{
    const unsigned pair = 1u << 5 | 1u << 8;
    const int rank = (*w)->rank;
    control_world *two = NULL;
    if (rank == 5)
        RING_TRY(derive_bits(*w, s->ids[3], pair, &two));
    if (rank == 5)
        control_report(two, RING_ERR_MISMATCH, "they called different things");
    RING_TRY(stage_meet(s, 1, SIZE));
    if (rank == 8) { /* it comes late: the verdict was here before */
        const double deadline = clock_now() + 5;
        do {
            control_free(two);
            RING_TRY(derive_bits(*w, s->ids[3], pair, &two));
        } while (control_verdict(two) == RING_OK && clock_now() < deadline);
    }
    if (two != NULL)
        RING_TRY(expect_verdict(two, RING_ERR_MISMATCH, "they called different things"));
    RING_TRY(stage_meet(s, 2, SIZE));
    control_free(two);
    return expect_verdict(*w, RING_OK, "");
}

static void a_verdict_passes_others_and_awaits_who_comes_late(void **state)
{
    stage_run(stage_new(SIZE, end_a_pair), 0);
}

/* ---- Statements -------------------------------------------------------------------- */

static atomic_int waits, refusals;

static void tally(void *context, int rank, const control_statement *statement)
{
    atomic_fetch_add(statement->refused ? &refusals : &waits, 1);
}

/* All wait in call 7 but rank 4, which waits in another one; twice each. */
static ring_status stall(stage *s, control_world **w)
{
    control_statement wait = {.number = 7, .signature = 5, .count = 100, .peer = -1};
    control_statement refusal = {.number = 8, .peer = -1, .refused = 1};
    if ((*w)->rank == 4)
        wait.signature = 6;
    control_set_statement_sink(*w, tally, NULL);
    RING_TRY(stage_meet(s, 1, SIZE));
    const control_counts before = control_count(*w);
    control_state(*w, &wait);
    control_state(*w, &wait);
    RING_TRY(stage_meet(s, 2, SIZE));
    clock_sleep(0.3);
    const int said = (int)(control_count(*w).messages - before.messages);
    /* each of the two once a connection, five at most; beats follow, and are few */
    const int most = 5 * 2 + 5 * 3;
    if (atomic_load(&waits) < 1 || atomic_load(&waits) > 2 || said > most)
        return fail(RING_ERR_INTERNAL, "rank %d heard %d statements, said %d messages", (*w)->rank,
                    atomic_load(&waits), said);
    RING_TRY(stage_meet(s, 3, SIZE));
    control_state(*w, &refusal);
    const double deadline = clock_now() + 5;
    while (atomic_load(&refusals) < SIZE - 1 && clock_now() < deadline)
        clock_sleep(0.001);
    RING_TRY(stage_meet(s, 4, SIZE));
    return atomic_load(&refusals) == SIZE - 1
               ? RING_OK
               : fail(RING_ERR_INTERNAL, "%d refusals", atomic_load(&refusals));
}

static void that_all_wait_is_told_once_and_each_refusal(void **state)
{
    stage_run(stage_new(SIZE, stall), 0);
}

/* More than are kept; a verdict from before them still reaches who comes later. */
static ring_status flood(stage *s, control_world **w)
{
    const unsigned pair = 3;
    control_world *two = NULL;
    control_statement refusal = {.peer = -1, .refused = 1, .text = "I do not"};
    if ((*w)->rank == 0) {
        RING_TRY(derive_bits(*w, s->ids[0], pair, &two));
        control_report(two, RING_ERR_ABORTED, "enough of two");
        for (int i = 0; i < 200; i++, refusal.number++)
            control_state(*w, &refusal);
    }
    RING_TRY(stage_meet(s, 1, s->size));
    if ((*w)->rank == 1) {
        clock_sleep(0.2);
        RING_TRY(derive_bits(*w, s->ids[0], pair, &two));
        RING_TRY(expect_verdict(two, RING_ERR_ABORTED, "enough of two"));
    }
    RING_TRY(stage_meet(s, 2, s->size));
    control_free(two);
    return RING_OK;
}

static void statements_do_not_push_verdicts_out(void **state)
{
    stage_run(stage_new(4, flood), 0);
}

/* Every rank says more than is kept of all; then there is quiet, but for beats. */
static ring_status flood_by_all(stage *s, control_world **w)
{
    control_statement refusal = {.peer = -1, .refused = 1, .text = "I do not"};
    for (int i = 0; i < 100; i++, refusal.number++)
        control_state(*w, &refusal);
    RING_TRY(stage_meet(s, 1, s->size));
    clock_sleep(1);
    const uint64_t before = control_count(*w).messages;
    clock_sleep(0.5);
    const uint64_t said = control_count(*w).messages - before;
    RING_TRY(stage_meet(s, 2, s->size));
    return said < 100 ? RING_OK
                      : fail(RING_ERR_INTERNAL, "%llu messages in half a second of quiet",
                             (unsigned long long)said);
}

static void statements_do_not_go_in_circles(void **state)
{
    stage_run(stage_new(4, flood_by_all), 0);
}

/* ---- Forgetting ---------------------------------------------------------------------- */

enum { FEW = 4, FEW_BITS = 0xf, FAILURES = 150, FIRST_ID = 1000 };

/* Each end is a verdict, and a note of each rank that it takes no part in a shrinking. */
static ring_status fail_one(control_world *w, int i)
{
    control_world *other;
    RING_TRY(derive_bits(w, (uint64_t)(FIRST_ID + i), FEW_BITS, &other));
    if (w->rank == i % FEW)
        control_report(other, RING_ERR_ABORTED, "enough of this one");
    const ring_status status = expect_verdict(other, RING_ERR_ABORTED, "enough of this one");
    control_free(other);
    return status;
}

static int notes_kept(control_world *w)
{
    control_lock();
    const int count = group_of(w)->member->bulletins[BULLETIN_LASTING].count;
    control_unlock();
    return count;
}

static ring_status few_notes_are_kept(control_world *w)
{
    const double deadline = clock_now() + 10;
    const int most = bulletin_most_ends(w->size);
    while (notes_kept(w) > most && clock_now() < deadline)
        clock_sleep(0.001);
    const int kept = notes_kept(w);
    return kept >= most - BULLETIN_ENDS / 2 && kept <= most
               ? RING_OK
               : fail(RING_ERR_INTERNAL, "%d notes are kept", kept);
}

/* All but the last rank decide without it. */
static ring_status shrink_without_last(control_world *w, control_world *broken)
{
    control_world *left;
    if (w->rank == 0)
        control_report(broken, RING_ERR_ABORTED, "enough of it");
    RING_TRY(expect_verdict(broken, RING_ERR_ABORTED, "enough of it"));
    if (w->rank == FEW - 1)
        return RING_OK;
    RING_TRY(control_shrink(broken, clock_now() + 0.3, &left));
    control_free(left);
    return RING_OK;
}

static ring_status learns_that_it_is_out(control_world *broken)
{
    control_world *left;
    const ring_status status = control_shrink(broken, clock_now() + 5, &left);
    return status == RING_ERR_PEER && strstr(fail_text(), "is excluded") != NULL
               ? RING_OK
               : fail(RING_ERR_INTERNAL, "the late shrink: %d", (int)status);
}

static ring_status make_late(stage *s, control_world *w, uint64_t id, int steps)
{
    control_world *late;
    if (w->rank == FEW - 1)
        RING_TRY(stage_meet(s, steps, FEW));
    RING_TRY(derive_bits(w, id, FEW_BITS, &late));
    if (w->rank == 1)
        control_report(late, RING_ERR_ABORTED, "too late");
    RING_TRY(expect_verdict(late, RING_ERR_ABORTED, "too late"));
    if (w->rank != FEW - 1)
        RING_TRY(stage_meet(s, steps, FEW));
    control_free(late);
    return RING_OK;
}

static ring_status forget_most(stage *s, control_world **w)
{
    control_world *broken;
    RING_TRY(derive_bits(*w, s->ids[0], FEW_BITS, &broken));
    RING_TRY(shrink_without_last(*w, broken));
    RING_TRY(stage_meet(s, 1, FEW));
    for (int i = 0; i < FAILURES; i++)
        RING_TRY(fail_one(*w, i));
    RING_TRY(stage_meet(s, 2, FEW));
    RING_TRY(few_notes_are_kept(*w));
    RING_TRY(make_late(s, *w, s->ids[1], 3));
    if ((*w)->rank == FEW - 1)
        RING_TRY(learns_that_it_is_out(broken));
    RING_TRY(expect_verdict(*w, RING_OK, ""));
    RING_TRY(stage_meet(s, 4, FEW));
    control_free(broken);
    return RING_OK;
}

static void most_of_what_ended_is_forgotten(void **state)
{
    stage_run(stage_new(FEW, forget_most), 0);
}

/* As after a new connection brought back notes that rank 0 had told before rank 1 forgot them. */
static void miss_answers(control_world *w)
{
    control_lock();
    for (connection *c = group_of(w)->member->connections; c != NULL; c = c->next)
        c->confirmed -= 1000; /* for good */
    control_unlock();
}

static ring_status forget_unanswered(stage *s, control_world **w)
{
    for (int i = 0; i < FAILURES; i++) {
        if (i == FAILURES / 2)
            RING_TRY(stage_meet(s, 1, FEW));
        if (i == FAILURES / 2 && (*w)->rank == 1)
            miss_answers(*w);
        RING_TRY(fail_one(*w, i));
    }
    RING_TRY(stage_meet(s, 2, FEW));
    RING_TRY(few_notes_are_kept(*w));
    return stage_meet(s, 3, FEW);
}

static void a_neighbour_that_tells_less_keeps_nothing_in_the_log(void **state)
{
    stage_run(stage_new(FEW, forget_unanswered), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(many_communicators_share_sockets_and_thread),
        TIMED_TEST(the_last_communicator_ends_the_membership),
        TIMED_TEST(a_rank_alone_derives_reports_and_shrinks),
        TIMED_TEST(a_verdict_passes_others_and_awaits_who_comes_late),
        TIMED_TEST(that_all_wait_is_told_once_and_each_refusal),
        TIMED_TEST(statements_do_not_push_verdicts_out),
        TIMED_TEST(statements_do_not_go_in_circles),
        TIMED_TEST(most_of_what_ended_is_forgotten),
        TIMED_TEST(a_neighbour_that_tells_less_keeps_nothing_in_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

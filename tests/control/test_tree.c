/* SPDX-License-Identifier: Apache-2.0
 *
 * The channel among many real processes: how long they take to start, what rank 0 sends, and a
 * reason that its rank's end does not outrun. The simulation judges deaths in each state.
 */
#include "stage.h"

#include "control_message.h"

#include <stdatomic.h>
#include <unistd.h>

/* Three levels: rank 0; 1-4; 5-15. */
enum { SIZE = 16, INNER = 1, LEAF = 15, MANY = 64 };

/* ---- Many --------------------------------------------------------------------------- */

static ring_status start_at_once(int rank, int size, void *id)
{
    control_world *w;
    RING_TRY(join_by_id(id, size, rank, 5, &w));
    const ring_status status = control_agree(w, RING_OK);
    control_start(w, no_wake, NULL);
    control_free(w);
    return status;
}

/* Half a second on 2 cores that are idle. */
static void ranks_256_join_in_a_few_seconds(void **state)
{
    ring_unique_id id = new_id();
    crew *c = crew_new(RANKS_MAX);
    if (SANITIZED)
        skip_because("sanitizers slow 256 ranks down too much");
    set_number("RING_INIT_TIMEOUT", 300);
    const double start = clock_now();
    crew_processes(c, RANKS_MAX, start_at_once, &id);
    const double took = clock_now() - start;
    crew_assert_all(c, RING_OK);
    print_message("%d ranks started and left in %.2f s\n", RANKS_MAX, took);
    assert_true(took < seconds_allowed(5));
    crew_free(c);
}

/* ---- Reasons come before their effects --------------------------------------------- */

typedef struct exit_early {
    ring_unique_id id;
    int victim;
} exit_early;

static ring_status fail_and_exit_at_once(int rank, int size, void *context)
{
    const exit_early *d = context;
    control_world *w;
    RING_TRY(join_by_id(&d->id, size, rank, 5, &w));
    if (rank == d->victim) {
        control_announce(w, fail(RING_ERR_CONFIG, "the arguments make no sense"));
        _exit(0);
    }
    const ring_status status = control_agree(w, RING_OK);
    control_free(w);
    return status;
}

static void a_rank_that_fails_and_exits_does_not_outrun_its_reason(void **state)
{
    const int victims[] = {0, INNER, 4, 6, LEAF};
    for (int i = 0; i < 10; i++) {
        exit_early d = {.id = new_id(), .victim = victims[i % 5]};
        crew *c = crew_new(SIZE);
        crew_processes(c, SIZE, fail_and_exit_at_once, &d);
        for (int r = 0; r < SIZE; r++)
            if (r != d.victim)
                outcome_assert(&c->outcomes[r], RING_ERR_CONFIG, "the arguments make no sense");
        crew_free(c);
    }
}

/* ---- How much rank 0 says ---------------------------------------------------------- */

typedef struct tally {
    ring_unique_id id;
    control_counts start, end; /* of rank 0: after the start, and after a verdict */
    atomic_bool counted;       /* until then no rank leaves: goodbyes are messages, too */
} tally;

/* Newcomers come to rank 0 first, and leave it when they have another way up. */
static void wait_for_children_alone(const control_world *w)
{
    const double end = clock_now() + 10;
    while (control_count(w).connections > CONTROL_FANOUT && clock_now() < end)
        clock_sleep(0.01);
}

static ring_status count_rank_0(int rank, int size, void *context)
{
    tally *t = context;
    control_world *w;
    RING_TRY(join_by_id(&t->id, size, rank, 5, &w));
    ring_status status = control_agree(w, RING_OK);
    control_start(w, no_wake, NULL);
    if (rank == 0) {
        wait_for_children_alone(w);
        t->start = control_count(w);
        control_report(w, RING_ERR_ABORTED, "enough");
        t->end = control_count(w);
        atomic_store(&t->counted, true);
    }
    if (status == RING_OK)
        status = verdict_within(w, 10);
    for (const double end = clock_now() + 10; !atomic_load(&t->counted) && clock_now() < end;)
        clock_sleep(0.01);
    control_free(w);
    return status;
}

/* Messages that say more than that rank 0 lives: beats are as many as the time that passes. */
static uint64_t words(const control_counts *counts)
{
    return counts->messages - counts->beats;
}

static tally count_for(int size)
{
    tally t = {.id = new_id()};
    crew *c = crew_new(size);
    crew_threads(c, size, count_rank_0, &t);
    crew_assert_all(c, RING_ERR_ABORTED);
    crew_free(c);
    print_message("%d ranks: rank 0 has %d connections, said %llu messages, %llu for a verdict\n",
                  size, t.start.connections, (unsigned long long)words(&t.start),
                  (unsigned long long)(words(&t.end) - words(&t.start)));
    return t;
}

/* To each child the terms, the cards, one barrier and a verdict, once or twice; nothing to other
 * ranks. */
static void rank_0_speaks_to_its_children_only(void **state)
{
    const int sizes[] = {SIZE, 40, MANY};
    for (int i = 0; i < 3; i++) {
        const tally t = count_for(sizes[i]);
        const uint64_t cards = (uint64_t)(sizes[i] + CONTROL_CARDS_MOST - 1) / CONTROL_CARDS_MOST;
        assert_int_equal(t.start.connections, CONTROL_FANOUT);
        assert_true(words(&t.start) <= CONTROL_FANOUT * (1 + cards + 1));
        assert_int_equal(t.start.bytes, t.start.messages * sizeof(control_sealed));
        assert_in_range(words(&t.end) - words(&t.start), CONTROL_FANOUT, 2 * CONTROL_FANOUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TIMED_TEST(ranks_256_join_in_a_few_seconds),
        TIMED_TEST(a_rank_that_fails_and_exits_does_not_outrun_its_reason),
        TIMED_TEST(rank_0_speaks_to_its_children_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

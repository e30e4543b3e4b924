/* SPDX-License-Identifier: Apache-2.0
 *
 * The channel among many ranks: cards and verdicts down the tree, whoever of it dies, stops or
 * leaves, and in whatever state.
 */
#include "ranks.h"

#include "control_message.h"
#include "puppet.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Three levels: rank 0; 1-4; 5-15. */
enum { SIZE = 16, INNER = 1, LEAF = 15, MANY = 64 };

static int set_up(void **state)
{
    (void)state;
    set_number("RING_INIT_TIMEOUT", 30);
    set_number("RING_PEER_TIMEOUT", 15);
    return 0;
}

static ring_status await_verdict(const control_world *w, double seconds)
{
    const double deadline = clock_now() + seconds;
    while (control_verdict(w) == RING_OK && clock_now() < deadline)
        clock_sleep(0.001);
    const ring_status status = control_verdict(w);
    return status == RING_OK ? RING_OK : fail(status, "%s", control_text(w));
}

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
    (void)state;
    ring_unique_id id = new_id();
    crew *c = crew_new(RANKS_MAX);
    if (SANITIZED)
        skip();
    set_number("RING_INIT_TIMEOUT", 300);
    const double start = clock_now();
    crew_processes(c, RANKS_MAX, start_at_once, &id);
    const double took = clock_now() - start;
    crew_assert_all(c, RING_OK);
    print_message("%d ranks started and left in %.2f s\n", RANKS_MAX, took);
    assert_true(took < seconds_allowed(5));
    crew_free(c);
}

/* ---- Scenes: ranks as processes, all of them running ------------------------------- */

typedef struct scene {
    ring_unique_id id;
    int size;
    atomic_int up, go, heard;    /* ranks that run; acts to begin; ranks with a verdict */
    double happened, told[SIZE]; /* when each rank knew */
    pid_t pids[SIZE];
    ring_status (*act)(struct scene *s, control_world *w);
} scene;

static ring_status play(int rank, int size, void *context)
{
    scene *s = context;
    control_world *w;
    RING_TRY(join_by_id(&s->id, size, rank, 5, &w));
    ring_status status = control_agree(w, RING_OK);
    control_start(w, no_wake, NULL);
    s->pids[rank] = getpid();
    atomic_fetch_add(&s->up, 1);
    while (atomic_load(&s->go) == 0)
        clock_sleep(0.001);
    if (status == RING_OK)
        status = s->act(s, w);
    s->told[rank] = clock_now();
    atomic_fetch_add(&s->heard, 1);
    control_free(w);
    return status;
}

static scene *begin(crew *c, ring_status (*act)(scene *s, control_world *w))
{
    scene *s = shared_memory(sizeof *s);
    s->id = new_id();
    s->size = SIZE;
    s->act = act;
    crew_fork(c, SIZE, play, s);
    while (atomic_load(&s->up) < SIZE)
        clock_sleep(0.001);
    return s;
}

static void go(scene *s)
{
    s->happened = clock_now();
    atomic_store(&s->go, 1);
}

static bool is_one_of(const int *set, int count, int rank)
{
    for (int i = 0; i < count; i++)
        if (set[i] == rank)
            return true;
    return false;
}

/* All but the `absent` ranks have ended with `status` and `part`, `most` seconds later. */
static void end(scene *s, crew *c, const int *absent, int count, ring_status status,
                const char *part, double most)
{
    const double deadline = clock_now() + 20;
    while (atomic_load(&s->heard) < SIZE - count && clock_now() < deadline)
        clock_sleep(0.002);
    for (int i = 0; i < count; i++)
        kill(c->pids[absent[i]], SIGKILL);
    crew_wait(c);
    for (int r = 0; r < SIZE; r++) {
        if (is_one_of(absent, count, r))
            continue;
        outcome_assert(&c->outcomes[r], status, part);
        const double took = s->told[r] - s->happened;
        if (took > seconds_allowed(most))
            stop_test("rank %d knew after %.2f s, wanted %.2f\n", r, took, most);
    }
    crew_free(c);
    shared_free(s, sizeof *s);
}

static ring_status wait_for_end(scene *s, control_world *w)
{
    (void)s;
    return await_verdict(w, 15);
}

static ring_status rank_5_aborts(scene *s, control_world *w)
{
    if (w->rank == 5)
        control_report(w, RING_ERR_ABORTED, "rank 5 has had enough");
    return wait_for_end(s, w);
}

static ring_status rank_0_aborts(scene *s, control_world *w)
{
    if (w->rank == 0)
        control_report(w, RING_ERR_ABORTED, "rank 0 has had enough");
    return wait_for_end(s, w);
}

static void a_verdict_reaches_all_around_a_stopped_rank(void **state)
{
    (void)state;
    const int stopped[] = {0, INNER};
    for (int i = 0; i < 2; i++) {
        crew *c = crew_new(SIZE);
        scene *s = begin(c, rank_5_aborts);
        kill(c->pids[stopped[i]], SIGSTOP);
        go(s);
        end(s, c, &stopped[i], 1, RING_ERR_ABORTED, "rank 5 has had enough", 2);
    }
    crew *c = crew_new(SIZE);
    scene *s = begin(c, rank_0_aborts);
    kill(c->pids[INNER], SIGSTOP);
    go(s);
    end(s, c, &stopped[1], 1, RING_ERR_ABORTED, "rank 0 has had enough", 2);
}

static void whoever_dies_is_named_on_all(void **state)
{
    (void)state;
    const int victims[] = {0, INNER, 3, LEAF};
    for (int i = 0; i < 4; i++) {
        char name[16];
        crew *c = crew_new(SIZE);
        scene *s = begin(c, wait_for_end);
        go(s);
        kill(c->pids[victims[i]], SIGKILL);
        snprintf(name, sizeof name, "rank %d (", victims[i]);
        end(s, c, &victims[i], 1, RING_ERR_PEER, name, 2);
    }
}

/* The parts of the tree may name different ones, but each names one that died. */
static void all_end_though_the_top_and_inner_ranks_die_together(void **state)
{
    (void)state;
    const int dead[] = {0, 1, 2};
    crew *c = crew_new(SIZE);
    scene *s = begin(c, wait_for_end);
    go(s);
    for (int i = 0; i < 3; i++)
        kill(c->pids[dead[i]], SIGKILL);
    end(s, c, dead, 3, RING_ERR_PEER, "was lost: its process ended", 2);
}

static ring_status abort_as_others_die(scene *s, control_world *w)
{
    if (w->rank == 0 || w->rank == INNER)
        raise(SIGKILL);
    if (w->rank == 7)
        control_report(w, RING_ERR_ABORTED, "rank 7 has had enough");
    (void)s;
    return await_verdict(w, 15) != RING_OK ? RING_ERR_ABORTED : RING_OK;
}

/* Whichever of the reasons it is. */
static void all_end_when_a_rank_aborts_while_others_die(void **state)
{
    (void)state;
    const int dead[] = {0, INNER};
    for (int i = 0; i < 5; i++) {
        crew *c = crew_new(SIZE);
        scene *s = begin(c, abort_as_others_die);
        go(s);
        end(s, c, dead, 2, RING_ERR_ABORTED, "", 2);
    }
}

/* ---- After ranks have left in order ------------------------------------------------ */

static const int leavers[] = {0, 1, 2};
enum { LEAVERS = sizeof leavers / sizeof leavers[0] };

/* One after the other, so that those behind them look for new ways up three times. */
static bool leaves(scene *s, const control_world *w)
{
    if (w->rank >= LEAVERS)
        return false;
    clock_sleep(0.15 * w->rank);
    (void)s;
    return true;
}

static void wait_until_they_left(const control_world *w)
{
    for (int r = 0; r < LEAVERS; r++)
        while (!control_left(w, r) && control_verdict(w) == RING_OK)
            clock_sleep(0.001);
    clock_sleep(0.3); /* for new ways up */
}

static ring_status leave_or_abort(scene *s, control_world *w)
{
    if (leaves(s, w))
        return RING_ERR_ABORTED; /* as all; it is not asked for its text */
    wait_until_they_left(w);
    if (w->rank == 9)
        control_report(w, RING_ERR_ABORTED, "rank 9 has had enough");
    return wait_for_end(s, w);
}

static ring_status leave_or_wait(scene *s, control_world *w)
{
    if (leaves(s, w))
        return RING_OK;
    wait_until_they_left(w);
    return wait_for_end(s, w);
}

static ring_status leave_or_die(scene *s, control_world *w)
{
    if (leaves(s, w))
        return RING_OK;
    wait_until_they_left(w);
    if (w->rank == 4)
        raise(SIGKILL);
    return wait_for_end(s, w);
}

static ring_status all_abort(scene *s, control_world *w)
{
    char text[64];
    if (leaves(s, w))
        return RING_ERR_TIMEOUT;
    wait_until_they_left(w);
    snprintf(text, sizeof text, "rank %d timed out", w->rank);
    control_report(w, RING_ERR_TIMEOUT, text);
    return wait_for_end(s, w);
}

/* @return the text of the ranks that stayed, all the same. */
static const char *same_text(const crew *c, int absent)
{
    const outcome *first = &c->outcomes[LEAF - 1];
    for (int r = LEAVERS; r < SIZE; r++)
        if (r != absent)
            assert_string_equal(c->outcomes[r].text, first->text);
    return first->text;
}

static void an_abort_reaches_all_who_stayed(void **state)
{
    (void)state;
    crew *c = crew_new(SIZE);
    scene *s = begin(c, leave_or_abort);
    go(s);
    crew_wait(c);
    crew_assert_all(c, RING_ERR_ABORTED);
    assert_non_null(strstr(same_text(c, -1), "rank 9 has had enough"));
    crew_free(c);
    shared_free(s, sizeof *s);
}

static bool all_have_one_text(const crew *c)
{
    const char *first = c->outcomes[LEAF - 1].text;
    for (int r = LEAVERS; r < SIZE; r++)
        if (strcmp(c->outcomes[r].text, first) != 0)
            return false;
    return strstr(first, "timed out") != NULL;
}

/* A rank that has no answer within 0.2 s decides by itself, so a busy machine has some tries.
 * control.simulation judges the same by a clock of its own. */
static void of_many_reports_one_is_everybodys_without_rank_0(void **state)
{
    enum { TRIES = 5 };
    bool agreed = false;
    (void)state;
    for (int i = 0; i < TRIES && !agreed; i++) {
        crew *c = crew_new(SIZE);
        scene *s = begin(c, all_abort);
        go(s);
        crew_wait(c);
        crew_assert_all(c, RING_ERR_TIMEOUT);
        agreed = all_have_one_text(c);
        crew_free(c);
        shared_free(s, sizeof *s);
    }
    assert_true(agreed);
}

static void assert_stayers_name(const crew *c, int victim, const char *part)
{
    char name[16];
    snprintf(name, sizeof name, "rank %d (", victim);
    for (int r = LEAVERS; r < SIZE; r++) {
        if (r == victim)
            continue;
        outcome_assert(&c->outcomes[r], RING_ERR_PEER, name);
        outcome_assert(&c->outcomes[r], RING_ERR_PEER, part);
    }
}

static void a_rank_that_dies_later_is_named_by_all_who_stayed(void **state)
{
    (void)state;
    crew *c = crew_new(SIZE);
    scene *s = begin(c, leave_or_die);
    go(s);
    crew_wait(c);
    assert_stayers_name(c, 4, "its process ended");
    crew_free(c);
    shared_free(s, sizeof *s);
}

static void a_rank_that_stops_later_is_named_by_all_who_stayed(void **state)
{
    (void)state;
    const int victims[] = {3, 10};
    set_number("RING_PEER_TIMEOUT", 2);
    for (int i = 0; i < 2; i++) {
        crew *c = crew_new(SIZE);
        scene *s = begin(c, leave_or_wait);
        go(s);
        clock_sleep(1.0);
        kill(c->pids[victims[i]], SIGSTOP);
        while (atomic_load(&s->heard) < SIZE - 1 && clock_now() - s->happened < 15)
            clock_sleep(0.002);
        kill(c->pids[victims[i]], SIGKILL);
        crew_wait(c);
        assert_stayers_name(c, victims[i], "no sign of life");
        crew_free(c);
        shared_free(s, sizeof *s);
    }
}

/* ---- Death in each state ----------------------------------------------------------- */

enum dying { DIES_JOINING, DIES_WITH_CARDS, DIES_LINKING, DIES_LEAVING };

typedef struct death {
    ring_unique_id id;
    int victim;
    enum dying when;
    atomic_int cards; /* sent to rank 0                    */
    atomic_int dying; /* the victim's process, 0: not yet */
} death;

static atomic_int *cards_sent; /* of the death, until this process has sent its card */

/* Stands before libc's: the first sealed message that a rank sends is its card. */
__attribute__((visibility("default"))) ssize_t send(int fd, const void *data, size_t bytes,
                                                    int flags)
{
    const ssize_t put = sendto(fd, data, bytes, flags, NULL, 0);
    if (cards_sent != NULL && put == (ssize_t)sizeof(control_sealed)) {
        atomic_fetch_add(cards_sent, 1);
        cards_sent = NULL;
    }
    return put;
}

/* The others are still joining when the victim dies. After the death of rank 0 none is left who
 * would tell this rank of it: its join ends by the time-out. */
static void come_after(const death *d)
{
    const double deadline = clock_now() + 60;
    while ((d->dying == 0 || !process_is_dead(d->dying)) && clock_now() < deadline)
        clock_sleep(0.002);
    if (d->victim == 0)
        set_number("RING_INIT_TIMEOUT", 1);
}

static ring_status survive(death *d, int rank, int size)
{
    control_world *w;
    if (d->when == DIES_JOINING && rank == LEAF)
        come_after(d);
    else if (rank > 0)
        cards_sent = &d->cards;
    RING_TRY(join_by_id(&d->id, size, rank, 5, &w));
    ring_status status = control_agree(w, RING_OK);
    if (status == RING_OK) {
        control_start(w, no_wake, NULL);
        status = await_verdict(w, 20);
    }
    control_free(w);
    return status;
}

/* Takes all cards, and hands none on. */
static ring_status die_with_cards(const death *d, int rank, int size)
{
    puppet p;
    control_message m;
    RING_TRY(puppet_dial(&p, &d->id, rank, size));
    RING_TRY(puppet_prove(&p));
    RING_TRY(puppet_bring_card(&p, "elsewhere", 4711));
    do {
        RING_TRY(puppet_hear(&p, &m));
    } while (m.kind != CONTROL_CARDS || m.rank + m.count < size);
    puppet_end(&p);
    return RING_OK;
}

/* Once the cards of all but the last are on their way to rank 0. */
static void *kill_when_cards_are_sent(void *context)
{
    death *d = context;
    while (atomic_load(&d->cards) < SIZE - 2)
        clock_sleep(0.002);
    atomic_store(&d->dying, (int)getpid());
    raise(SIGKILL);
    return NULL;
}

static void die_while_joining(death *d, int rank)
{
    pthread_t thread;
    if (rank > 0)
        cards_sent = &d->cards;
    pthread_create(&thread, NULL, kill_when_cards_are_sent, d);
}

static ring_status die(death *d, int rank, int size)
{
    control_world *w;
    if (d->when == DIES_WITH_CARDS)
        return die_with_cards(d, rank, size);
    if (d->when == DIES_JOINING)
        die_while_joining(d, rank);
    RING_TRY(join_by_id(&d->id, size, rank, 5, &w));
    if (d->when == DIES_LINKING)
        raise(SIGKILL);
    RING_TRY(control_agree(w, RING_OK));
    control_start(w, no_wake, NULL);
    kill(getpid(), SIGKILL); /* half way out: the others still wait for its goodbye */
    return RING_OK;
}

static ring_status die_or_survive(int rank, int size, void *context)
{
    death *d = context;
    return rank == d->victim ? die(d, rank, size) : survive(d, rank, size);
}

static void expect_naming(int victim, enum dying when)
{
    char name[16];
    death *d = shared_memory(sizeof *d);
    crew *c = crew_new(SIZE);
    *d = (death){.id = new_id(), .victim = victim, .when = when};
    snprintf(name, sizeof name, "rank %d", victim);
    crew_processes(c, SIZE, die_or_survive, d);
    for (int r = 0; r < SIZE; r++) {
        const bool came_after_rank_0 = when == DIES_JOINING && victim == 0 && r == LEAF;
        if (r != victim)
            outcome_assert(&c->outcomes[r], came_after_rank_0 ? RING_ERR_TIMEOUT : RING_ERR_PEER,
                           name);
    }
    crew_free(c);
    shared_free(d, sizeof *d);
}

static void a_rank_that_dies_while_joining_is_named_on_all(void **state)
{
    (void)state;
    expect_naming(0, DIES_JOINING);
    expect_naming(INNER, DIES_JOINING);
    expect_naming(6, DIES_JOINING);
}

static void a_rank_that_dies_with_the_cards_of_others_is_named_on_all(void **state)
{
    (void)state;
    expect_naming(INNER, DIES_WITH_CARDS);
    expect_naming(3, DIES_WITH_CARDS);
}

static void a_rank_that_dies_while_linking_is_named_on_all(void **state)
{
    (void)state;
    expect_naming(0, DIES_LINKING);
    expect_naming(INNER, DIES_LINKING);
    expect_naming(LEAF, DIES_LINKING);
}

static void a_rank_that_dies_without_a_goodbye_is_named_on_all(void **state)
{
    (void)state;
    expect_naming(0, DIES_LEAVING);
    expect_naming(INNER, DIES_LEAVING);
    expect_naming(LEAF, DIES_LEAVING);
}

/* ---- Reasons come before their effects --------------------------------------------- */

static ring_status fail_and_exit_at_once(int rank, int size, void *context)
{
    const death *d = context;
    control_world *w;
    RING_TRY(join_by_id(&d->id, size, rank, 5, &w));
    if (rank == d->victim) {
        control_announce(w, fail(RING_ERR_CONFIG, "what I was told makes no sense"));
        _exit(0);
    }
    const ring_status status = control_agree(w, RING_OK);
    control_free(w);
    return status;
}

static void a_rank_that_fails_and_exits_does_not_outrun_its_reason(void **state)
{
    (void)state;
    const int victims[] = {0, INNER, 4, 6, LEAF};
    for (int i = 0; i < 10; i++) {
        death d = {.id = new_id(), .victim = victims[i % 5]};
        crew *c = crew_new(SIZE);
        crew_processes(c, SIZE, fail_and_exit_at_once, &d);
        for (int r = 0; r < SIZE; r++)
            if (r != d.victim)
                outcome_assert(&c->outcomes[r], RING_ERR_CONFIG, "what I was told makes no sense");
        crew_free(c);
    }
}

/* ---- How much rank 0 says ---------------------------------------------------------- */

typedef struct tally {
    ring_unique_id id;
    control_counts start, end; /* of rank 0: after the start, and after a verdict */
} tally;

static ring_status count_rank_0(int rank, int size, void *context)
{
    tally *t = context;
    control_world *w;
    RING_TRY(join_by_id(&t->id, size, rank, 5, &w));
    ring_status status = control_agree(w, RING_OK);
    control_start(w, no_wake, NULL);
    if (rank == 0) {
        clock_sleep(0.6); /* a beat has followed, and the next is not due yet */
        t->start = control_count(w);
        control_report(w, RING_ERR_ABORTED, "enough");
        t->end = control_count(w);
    }
    if (status == RING_OK)
        status = await_verdict(w, 10);
    control_free(w);
    return status;
}

static tally count_for(int size)
{
    tally t = {.id = new_id()};
    crew *c = crew_new(size);
    crew_threads(c, size, count_rank_0, &t);
    crew_assert_all(c, RING_ERR_ABORTED);
    crew_free(c);
    print_message("%d ranks: rank 0 has %d connections, said %llu messages, %llu for a verdict\n",
                  size, t.start.connections, (unsigned long long)t.start.messages,
                  (unsigned long long)(t.end.messages - t.start.messages));
    return t;
}

/* To each child the terms, the cards, one barrier and some beats, and a verdict with at most one;
 * nothing to anybody else. */
static void rank_0_speaks_to_its_children_only(void **state)
{
    enum { MOST_BEATS = 6 }; /* a sanitizer's start takes seconds */
    (void)state;
    const int sizes[] = {SIZE, 40, MANY};
    for (int i = 0; i < 3; i++) {
        const tally t = count_for(sizes[i]);
        const uint64_t cards = (uint64_t)(sizes[i] + CONTROL_CARDS_MOST - 1) / CONTROL_CARDS_MOST;
        assert_int_equal(t.start.connections, CONTROL_FANOUT);
        assert_true(t.start.messages <= CONTROL_FANOUT * (1 + cards + 1 + MOST_BEATS));
        assert_int_equal(t.start.bytes, t.start.messages * sizeof(control_sealed));
        assert_in_range(t.end.messages - t.start.messages, CONTROL_FANOUT, 2 * CONTROL_FANOUT);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, set_up)
    const struct CMUnitTest tests[] = {
        TEST(ranks_256_join_in_a_few_seconds),
        TEST(a_verdict_reaches_all_around_a_stopped_rank),
        TEST(whoever_dies_is_named_on_all),
        TEST(all_end_though_the_top_and_inner_ranks_die_together),
        TEST(all_end_when_a_rank_aborts_while_others_die),
        TEST(an_abort_reaches_all_who_stayed),
        TEST(of_many_reports_one_is_everybodys_without_rank_0),
        TEST(a_rank_that_dies_later_is_named_by_all_who_stayed),
        TEST(a_rank_that_stops_later_is_named_by_all_who_stayed),
        TEST(a_rank_that_dies_while_joining_is_named_on_all),
        TEST(a_rank_that_dies_with_the_cards_of_others_is_named_on_all),
        TEST(a_rank_that_dies_while_linking_is_named_on_all),
        TEST(a_rank_that_dies_without_a_goodbye_is_named_on_all),
        TEST(a_rank_that_fails_and_exits_does_not_outrun_its_reason),
        TEST(rank_0_speaks_to_its_children_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

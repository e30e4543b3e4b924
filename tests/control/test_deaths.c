/* SPDX-License-Identifier: Apache-2.0
 *
 * Starts of 64 processes with random delays between their steps; and the same with one that dies:
 * before, in the midst of or right after a message of the channel, whichever it is, so in each
 * state of it. Every survivor names the dead rank, and no other. RING_TEST_JOINS: of each kind so
 * many (5, 10); RING_TEST_SEED: begins at that one (0). */
#include "ranks.h"

#include "control_message.h"
#include "handshake.h"
#include "tree.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { SIZE = 64, HUNG_SECONDS = 40 };
#define INIT_SECONDS 5.0
#define RUN_SECONDS 2.0   /* who hears of no death by then ends */
#define KNOWN_SECONDS 2.0 /* a death is known by then */

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : otherwise;
}

/* ---- How one dies ------------------------------------------------------------------ */

enum state { JOINING, CARDS, LINKING, RUNNING, LEAVING, STATES };
static const char *const state_names[STATES] = {"joining", "cards", "linking", "running",
                                                "leaving"};

/* The victim's latest word; messages of the channel are their kind. */
enum { HELLO = CONTROL_KINDS, ANSWER, PROOF, WELCOME, NOTHING };
static const char *const word_names[] = {[HELLO] = "hello",
                                         [ANSWER] = "answer",
                                         [PROOF] = "proof",
                                         [WELCOME] = "welcome",
                                         [NOTHING] = "nothing",
                                         [CONTROL_CARD] = "CARD",
                                         [CONTROL_TERMS] = "TERMS",
                                         [CONTROL_CARDS] = "CARDS",
                                         [CONTROL_SEATED] = "SEATED",
                                         [CONTROL_READY] = "READY",
                                         [CONTROL_GO] = "GO",
                                         [CONTROL_BEAT] = "BEAT",
                                         [CONTROL_GOODBYE] = "GOODBYE"};
enum part { BEFORE, HALF, AFTER, PARTS };
static const char *const part_names[PARTS] = {"before", "in the midst of", "after"};

typedef struct death {
    enum state state;
    int victim; /* -1: nobody dies */
    int word, nth;
    enum part part;
} death;

typedef struct plan {
    ring_unique_id id;
    unsigned seed;
    death death;
    double died, told[SIZE];
} plan;

/* In the victim. */
static plan *armed;
static int still_said;

static int word_of(const void *data, size_t bytes)
{
    control_message m;
    switch (bytes) {
    case sizeof(handshake_hello):
        return HELLO;
    case sizeof(handshake_hello) + HANDSHAKE_MAC:
        return ANSWER;
    case HANDSHAKE_MAC:
        return PROOF;
    case 1:
        return WELCOME;
    case sizeof(control_sealed):
        memcpy(&m, data, sizeof m);
        return (int)m.kind;
    default:
        return NOTHING;
    }
}

static void die(plan *p)
{
    p->died = clock_now();
    (void)kill(getpid(), SIGKILL);
}

/* In place of libc's: all of control's words go through it. */
ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    const bool last = armed != NULL && word_of(data, bytes) == armed->death.word &&
                      still_said-- == 0;
    if (last && armed->death.part == BEFORE)
        die(armed);
    const size_t said = last && armed->death.part == HALF ? bytes / 2 : bytes;
    const ssize_t put = syscall(SYS_sendto, fd, data, said, flags, NULL, 0);
    if (last)
        die(armed);
    return put;
}

/* ---- A rank ------------------------------------------------------------------------ */

static void pause_up_to(unsigned *seed, int ms)
{
    clock_sleep((rand_r(seed) % ms) * 1e-3);
}

static ring_status check_cards(const control_world *w)
{
    for (int r = 0; r < w->size; r++)
        if (w->cards[r].rank != r || w->cards[r].pid <= 0)
            return fail(RING_ERR_INTERNAL, "the card of rank %d is wrong", r);
    return RING_OK;
}

/* Live ranks wait for the verdict; the victim leaves, or dies. */
static ring_status run(plan *p, const control_world *w, unsigned *seed)
{
    const death *d = &p->death;
    const double end = clock_now() + (d->victim >= 0 ? RUN_SECONDS : 0.1);
    if (w->rank == d->victim && d->state != RUNNING)
        return RING_OK;
    if (w->rank == d->victim && d->word == NOTHING) {
        pause_up_to(seed, 300);
        die(p);
    }
    while (control_verdict(w) == RING_OK && clock_now() < end)
        clock_sleep(0.002);
    return control_verdict(w) == RING_OK ? RING_OK
                                         : fail(control_verdict(w), "%s", control_text(w));
}

static ring_status live(plan *p, int rank, int size, unsigned *seed)
{
    control_world *w;
    pause_up_to(seed, 300);
    RING_TRY(join_by_id(&p->id, size, rank, 5, &w));
    pause_up_to(seed, 30);
    ring_status status = control_agree(w, RING_OK);
    if (status == RING_OK)
        status = check_cards(w);
    if (status == RING_OK) {
        control_start(w, no_wake, NULL);
        pause_up_to(seed, 100);
        status = run(p, w, seed);
    }
    p->told[rank] = clock_now();
    control_free(w);
    return status;
}

static ring_status live_or_die(int rank, int size, void *context)
{
    plan *p = context;
    unsigned seed = p->seed * 1000 + (unsigned)rank;
    alarm(HUNG_SECONDS);
    still_said = p->death.nth;
    armed = rank == p->death.victim ? p : NULL;
    const ring_status status = live(p, rank, size, &seed);
    if (p->told[rank] <= 0)
        p->told[rank] = clock_now();
    if (armed != NULL)
        die(p); /* it never said that */
    return status;
}

static plan *plan_new(unsigned seed)
{
    plan *p = shared_memory(sizeof *p);
    p->id = new_id();
    p->seed = seed;
    p->death.victim = -1;
    return p;
}

/* ---- All live ---------------------------------------------------------------------- */

static void ranks_with_random_delays_start_and_leave(void **state)
{
    (void)state;
    const int joins = number_of("RING_TEST_JOINS", 5), first = number_of("RING_TEST_SEED", 0);
    double longest = 0;
    for (int i = first; i < first + joins; i++) {
        plan *p = plan_new((unsigned)i);
        crew *c = crew_new(SIZE);
        crew_processes(c, SIZE, live_or_die, p);
        crew_assert_all(c, RING_OK);
        for (int r = 0; r < SIZE; r++)
            longest = c->outcomes[r].seconds > longest ? c->outcomes[r].seconds : longest;
        crew_free(c);
        shared_free(p, sizeof *p);
    }
    print_message("%d joins of %d ranks, all well, the longest %.2f s\n", joins, SIZE, longest);
}

/* ---- One dies ---------------------------------------------------------------------- */

/* Rank 0, one that hands on, or one that does not. */
static int choose_victim(unsigned *seed)
{
    const int leaf = (SIZE - 2) / CONTROL_FANOUT + 1;
    const int role = rand_r(seed) % 5;
    return role == 0  ? 0
           : role < 3 ? 1 + rand_r(seed) % (leaf - 1)
                      : leaf + rand_r(seed) % (SIZE - leaf);
}

static int choose(unsigned *seed, const int *words, int count)
{
    return words[rand_r(seed) % count];
}

/* Words that a rank says in that state. */
static int choose_word(unsigned *seed, enum state state, int victim)
{
    static const int of_rank_0[] = {ANSWER, WELCOME}, of_others[] = {HELLO, PROOF, CONTROL_CARD};
    static const int handing[] = {CONTROL_TERMS, CONTROL_CARDS, CONTROL_CARDS};
    static const int agreeing[] = {CONTROL_READY, CONTROL_GO}, running[] = {NOTHING, CONTROL_BEAT};
    const bool hands_on = tree_children(victim, SIZE) > 0;
    switch (state) {
    case JOINING:
        return victim == 0 ? choose(seed, of_rank_0, 2) : choose(seed, of_others, 3);
    case CARDS:
        return hands_on ? choose(seed, handing, 3) : CONTROL_SEATED;
    case LINKING:
        return victim == 0 ? CONTROL_GO : choose(seed, agreeing, hands_on ? 2 : 1);
    case RUNNING:
        return choose(seed, running, 2);
    default:
        return CONTROL_GOODBYE;
    }
}

static int times_said(int word, int victim)
{
    const int below = tree_children(victim, SIZE);
    switch (word) {
    case ANSWER:
    case WELCOME:
        return SIZE - 1;
    case CONTROL_CARDS:
        return below * SIZE / CONTROL_CARDS_MOST;
    case CONTROL_TERMS:
    case CONTROL_GO:
        return below;
    case CONTROL_GOODBYE:
        return below + (victim > 0);
    default:
        return 1;
    }
}

static death choose_death(unsigned seed)
{
    death d = {.state = (enum state)(seed % STATES)};
    seed = seed * 7919 + 17;
    d.victim = choose_victim(&seed);
    d.word = choose_word(&seed, d.state, d.victim);
    d.nth = rand_r(&seed) % times_said(d.word, d.victim);
    d.part = (enum part)(rand_r(&seed) % PARTS);
    return d;
}

static bool names(const char *text, int rank)
{
    char name[16];
    const int length = snprintf(name, sizeof name, "rank %d", rank);
    const char *at = text;
    while ((at = strstr(at, name)) != NULL && isdigit((unsigned char)at[length]))
        at += length;
    return at != NULL;
}

/* "rank 5 (host, pid 1) was lost" of one that lives. */
static bool accuses_another(const char *text, int victim)
{
    int rank = victim;
    return strstr(text, " was lost") != NULL && sscanf(text, "rank %d", &rank) == 1 &&
           rank != victim;
}

/* Some may have heard its goodbye, and it may have had no more to say. */
static bool may_be_well(const death *d)
{
    return d->state == LEAVING && (d->nth > 0 || d->part == AFTER);
}

static bool is_told_well(const plan *p, const outcome *o, int rank)
{
    const death *d = &p->death;
    const bool late = d->state == JOINING && o->status == RING_ERR_TIMEOUT;
    if (o->status == RING_OK)
        return may_be_well(d);
    return (o->status == RING_ERR_PEER || late) && names(o->text, d->victim) &&
           !accuses_another(o->text, d->victim) &&
           (late || p->told[rank] - p->died < seconds_allowed(KNOWN_SECONDS));
}

typedef struct tally {
    int deaths, faults, named, well;
    double latest;
} tally;

static void print_death(const plan *p)
{
    const death *d = &p->death;
    print_error("seed %u: rank %d dies %s %s (%d), %s:\n", p->seed, d->victim, part_names[d->part],
                word_names[d->word], d->nth, state_names[d->state]);
}

static void judge(const plan *p, const crew *c, tally *t)
{
    bool first = true;
    t->deaths++;
    for (int r = 0; r < SIZE; r++) {
        const outcome *o = &c->outcomes[r];
        const double took = p->told[r] - p->died;
        if (r == p->death.victim)
            continue;
        t->named += o->status != RING_OK;
        t->well += o->status == RING_OK;
        if (o->status == RING_ERR_PEER && took > t->latest)
            t->latest = took;
        if (is_told_well(p, o, r))
            continue;
        if (first)
            print_death(p);
        first = false;
        print_error("  rank %d: status %d after %.2f s: %s\n", r, (int)o->status, took, o->text);
    }
    t->faults += !first;
}

static void whoever_dies_in_whatever_state_is_named_on_all(void **state)
{
    (void)state;
    tally tallies[STATES] = {{0}};
    int faults = 0;
    const int joins = number_of("RING_TEST_JOINS", 10), first = number_of("RING_TEST_SEED", 0);
    for (int i = first; i < first + joins; i++) {
        plan *p = plan_new((unsigned)i);
        crew *c = crew_new(SIZE);
        p->death = choose_death((unsigned)i);
        crew_processes(c, SIZE, live_or_die, p);
        judge(p, c, &tallies[p->death.state]);
        crew_free(c);
        shared_free(p, sizeof *p);
    }
    for (int s = 0; s < STATES; s++) {
        const tally *t = &tallies[s];
        print_message("%s: %d deaths, %d survivors name it, the latest after %.2f s, %d were done "
                      "with it, %d faults\n",
                      state_names[s], t->deaths, t->named, t->latest, t->well, t->faults);
        faults += t->faults;
    }
    assert_int_equal(faults, 0);
}

int main(void)
{
    set_number("RING_INIT_TIMEOUT", INIT_SECONDS);
    set_number("RING_PEER_TIMEOUT", 15);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_with_random_delays_start_and_leave),
        cmocka_unit_test(whoever_dies_in_whatever_state_is_named_on_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: Apache-2.0
 * Sets of plans for tests: one plan a rank, built by an algorithm or by hand, and changed. */
#ifndef TESTS_PLAN_PLANS_H
#define TESTS_PLAN_PLANS_H

#include "algo.h"

enum { MOST_RANKS = 64 };

typedef struct plan_set {
    plan *of[MOST_RANKS];
    int ranks;
} plan_set;

typedef struct plan_case {
    const algo *algorithm;
    plan_collective collective;
    int ranks, root, chunks;
    int per_host; /* ranks of a host, one behind the other; 0: all are on one; or a layout */
} plan_case;

/** Other layouts, to be given as per_host. */
enum {
    LAYOUT_IN_TURN = -1,   /* on three hosts, one after the other */
    LAYOUT_GROWING = -2,   /* hosts of 1, 2, 3, ... ranks */
    LAYOUT_SCATTERED = -3, /* hosts of different sizes, their ranks anywhere */
    LAYOUT_RANK_ORDER = -4 /* one host, whose sums are combined in the order of ranks */
};

/** A world whose hosts have so many ranks each; it lives until the next call. */
plan_world plans_world(int ranks, int per_host);

plan_set plans_build(const plan_case *c);
plan_set plans_copy(const plan_set *set);
/** As slices run them: each chunk of a range is a step, and a message, of its own. */
plan_set plans_cut(const plan_set *set);
void plans_free(plan_set *set);

/** plan_check(); fails the test with the checker's text unless it accepts. */
void plans_expect_proven(const plan_set *set);
/** Fails the test unless the checker refuses with a text that contains @p telling. */
void plans_expect_refused(const plan_set *set, const char *telling);
bool plans_proven(const plan_set *set);

/** One rank's unrolled steps without step @p index, or with it before its predecessor. */
void plans_drop(plan_set *set, int rank, int index);
void plans_swap(plan_set *set, int rank, int index);

/** Messages from one rank to another. */
int plans_messages(const plan_set *set, int from, int to);
/** Takes message @p number from one rank to another out of both their plans. */
void plans_drop_message(plan_set *set, int from, int to, int number);

/** Steps of a rank, unrolled; the one at @p index is to be changed in place. */
plan_step *plans_step(plan_set *set, int rank, int index);
/** Its first step of a kind. @return -1 if it has none. */
int plans_find(const plan_set *set, int rank, plan_kind kind);

/** Calls @p each for every algorithm, collective it supports, and root worth trying (first,
 *  middle, last), at these ranks with chunks of 1, 2, 3 times the unit; for several hosts, too,
 *  where plans depend on them. */
void plans_each_case(const char *algorithm, int ranks, void (*each)(const plan_case *c));

/** A small deterministic generator. */
uint32_t plans_random(uint64_t *state, uint32_t below);

#endif

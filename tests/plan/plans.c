/* SPDX-License-Identifier: Apache-2.0
 * Building, copying and breaking sets of plans. */
#include "plans.h"

#include <stdio.h>
#include <string.h>

#include "unit_test.h"

/* Some host, not yet one of the numbers by first appearance. */
static int place_of(int rank, int layout)
{
    int last = 0;
    switch (layout) {
    case LAYOUT_IN_TURN:
        return rank % 3;
    case LAYOUT_GROWING:
        for (int host = 0; last <= rank; host++)
            last += host + 1;
        return last;
    case LAYOUT_SCATTERED:
        return rank * rank * 5 % 11 % 5;
    default:
        return rank / layout;
    }
}

plan_world plans_world(int ranks, int per_host)
{
    static int32_t host_of[MOST_RANKS];
    plan_world world = {.ranks = ranks, .hosts = 1, .rank_order = per_host == LAYOUT_RANK_ORDER};
    if (per_host == 0 || world.rank_order)
        return world;
    world.hosts = 0;
    world.host_of = host_of;
    for (int rank = 0; rank < ranks; rank++) {
        int first = 0;
        while (place_of(first, per_host) != place_of(rank, per_host))
            first++;
        host_of[rank] = first < rank ? host_of[first] : world.hosts++;
    }
    return world;
}

plan_set plans_build(const plan_case *c)
{
    const plan_world world = plans_world(c->ranks, c->per_host);
    plan_set set = {.ranks = c->ranks};
    for (int rank = 0; rank < c->ranks; rank++) {
        set.of[rank] = c->algorithm->build(
            &(algo_call){c->collective, &world, rank, c->root, c->chunks});
        assert_non_null(set.of[rank]);
    }
    return set;
}

void plans_free(plan_set *set)
{
    for (int rank = 0; rank < set->ranks; rank++)
        plan_free(set->of[rank]);
}

bool plans_proven(const plan_set *set)
{
    return plan_check((const plan *const *)set->of, set->ranks) == RING_OK;
}

void plans_expect_proven(const plan_set *set)
{
    if (!plans_proven(set))
        fail_msg("%s", fail_text());
}

void plans_expect_refused(const plan_set *set, const char *telling)
{
    const ring_status status = plan_check((const plan *const *)set->of, set->ranks);
    if (status == RING_OK)
        fail_msg("accepted, but should have been refused: %s", telling);
    assert_int_equal(status, RING_ERR_INTERNAL);
    if (strstr(fail_text(), telling) == NULL)
        fail_msg("refused by \"%s\", which does not say \"%s\"", fail_text(), telling);
}

/* ---- Copies, unrolled ---------------------------------------------------------- */

static void copy_operand(plan *to, plan_loc loc, bool out)
{
    (out ? plan_add_output : plan_add_input)(to, &loc);
}

static void take_back(plan *p)
{
    p->loc_count = p->steps[--p->step_count].first_in;
    p->blocks[p->block_count - 1].steps--;
}

static void copy_step(plan *to, const plan_cursor *at)
{
    const plan_step *step = plan_at(at);
    plan_add_step(to, step);
    for (int i = 0; i < step->ins; i++)
        copy_operand(to, plan_input(at, step, i), false);
    for (int i = 0; i < step->outs; i++)
        copy_operand(to, plan_output(at, step, i), true);
}

static void copy_piece(plan *to, plan_loc loc, int piece, bool out)
{
    loc.chunk += piece;
    loc.chunks = 1;
    copy_operand(to, loc, out);
}

static void copy_cut(plan *to, const plan_cursor *at)
{
    const plan_step *step = plan_at(at);
    const int pieces = step->ins > 0 ? plan_input(at, step, 0).chunks : 1;
    for (int piece = 0; piece < pieces; piece++) {
        plan_add_step(to, step);
        for (int i = 0; i < step->ins; i++)
            copy_piece(to, plan_input(at, step, i), piece, false);
        for (int i = 0; i < step->outs; i++)
            copy_piece(to, plan_output(at, step, i), piece, true);
    }
}

static plan *empty_like(const plan *p)
{
    plan *copy = plan_new(p->collective, p->algorithm, p->rank, p->ranks, p->root, p->chunks);
    assert_non_null(copy);
    copy->circular = p->circular;
    return copy;
}

static void replace(plan_set *set, int rank, plan *by)
{
    assert_int_equal(plan_seal(by), RING_OK);
    plan_free(set->of[rank]);
    set->of[rank] = by;
}

/* Without step @p drop, with step @p swap before the one it follows; -1 for neither. */
static plan *copy_reordered(const plan *p, int drop, int swap)
{
    plan *copy = empty_like(p);
    plan_cursor at = plan_begin(p), before = at;
    for (int i = 0; plan_at(&at) != NULL; i++, plan_next(&at)) {
        if (i == swap)
            copy_step(copy, &at);
        if (i == swap)
            copy_step(copy, &before);
        else if (i != drop && i != swap - 1)
            copy_step(copy, &at);
        before = at;
    }
    return copy;
}

plan_set plans_copy(const plan_set *set)
{
    plan_set copy = {.ranks = set->ranks};
    for (int rank = 0; rank < set->ranks; rank++)
        replace(&copy, rank, copy_reordered(set->of[rank], -1, -1));
    return copy;
}

plan_set plans_cut(const plan_set *set)
{
    plan_set cut = {.ranks = set->ranks};
    for (int rank = 0; rank < set->ranks; rank++) {
        plan *copy = empty_like(set->of[rank]);
        for (plan_cursor at = plan_begin(set->of[rank]); plan_at(&at) != NULL; plan_next(&at))
            copy_cut(copy, &at);
        replace(&cut, rank, copy);
    }
    return cut;
}

void plans_drop(plan_set *set, int rank, int index)
{
    replace(set, rank, copy_reordered(set->of[rank], index, -1));
}

void plans_swap(plan_set *set, int rank, int index)
{
    replace(set, rank, copy_reordered(set->of[rank], -1, index));
}

/* ---- Taking operands out --------------------------------------------------------- */

/* The operand to leave out: the number-th message from or to a peer. */
typedef struct omission {
    int peer;
    bool out;
    int number, seen;
} omission;

static bool leaves_out(omission *o, plan_loc loc, bool out)
{
    return out == o->out && loc.rank == o->peer && o->seen++ == o->number;
}

/* @return how many operands were copied. */
static int copy_operands(plan *to, const plan_cursor *at, bool out, omission *o)
{
    const plan_step *step = plan_at(at);
    int copied = 0;
    for (int i = 0; i < (out ? step->outs : step->ins); i++) {
        const plan_loc loc = out ? plan_output(at, step, i) : plan_input(at, step, i);
        if (leaves_out(o, loc, out))
            continue;
        copy_operand(to, loc, out);
        copied++;
    }
    return copied;
}

/* A step that has lost all its inputs or outputs is gone. */
static plan *copy_without(const plan *p, omission o)
{
    plan *copy = empty_like(p);
    for (plan_cursor at = plan_begin(p); plan_at(&at) != NULL; plan_next(&at)) {
        const plan_step *step = plan_at(&at);
        plan_add_step(copy, step);
        const int ins = copy_operands(copy, &at, false, &o);
        const int outs = copy_operands(copy, &at, true, &o);
        if ((ins == 0 && step->ins > 0) || (outs == 0 && step->outs > 0))
            take_back(copy);
    }
    return copy;
}

int plans_messages(const plan_set *set, int from, int to)
{
    const plan_peer *peer = plan_peer_of(set->of[from], to);
    return peer != NULL ? peer->sends : 0;
}

void plans_drop_message(plan_set *set, int from, int to, int number)
{
    replace(set, from, copy_without(set->of[from], (omission){to, true, number, 0}));
    replace(set, to, copy_without(set->of[to], (omission){from, false, number, 0}));
}

/* ---- Looking and choosing ---------------------------------------------------------- */

plan_step *plans_step(plan_set *set, int rank, int index)
{
    assert_in_range(index, 0, set->of[rank]->step_count - 1);
    return &set->of[rank]->steps[index];
}

int plans_find(const plan_set *set, int rank, plan_kind kind)
{
    int index = 0;
    for (plan_cursor at = plan_begin(set->of[rank]); plan_at(&at) != NULL; plan_next(&at), index++)
        if (plan_at(&at)->kind == kind)
            return index;
    return -1;
}

static void each_root(plan_case c, void (*each)(const plan_case *c))
{
    const int roots[] = {0, c.ranks / 2, c.ranks - 1};
    for (int i = 0; i < (plan_facts_of(c.collective)->rooted ? 3 : 1); i++) {
        c.root = roots[i];
        if (i == 0 || roots[i] != roots[i - 1])
            each(&c);
    }
}

static void each_chunking(plan_case c, void (*each)(const plan_case *c))
{
    const plan_world world = plans_world(c.ranks, c.per_host);
    const int unit = c.algorithm->chunks(c.collective, &world, 0);
    for (int times = 1; times <= 3; times++) {
        c.chunks = times * unit;
        each_root(c, each);
    }
}

/* The layouts that matter to an algorithm, all on one host first. @return how many. */
static int layouts_of(const char *algorithm, const int **layouts)
{
    static const int all[] = {0, 3, 1, 4, LAYOUT_IN_TURN, LAYOUT_GROWING, LAYOUT_SCATTERED};
    static const int orders[] = {0, LAYOUT_RANK_ORDER};
    if (strcmp(algorithm, "direct") == 0) {
        *layouts = orders;
        return 2;
    }
    *layouts = all;
    if (strcmp(algorithm, "hierarchical") == 0)
        return sizeof all / sizeof *all;
    return strcmp(algorithm, "tree") == 0 ? 2 : 1;
}

void plans_each_case(const char *algorithm, int ranks, void (*each)(const plan_case *c))
{
    plan_case c = {.algorithm = algo_find(algorithm), .ranks = ranks};
    const int *layouts, count = ranks > 1 ? layouts_of(algorithm, &layouts) : 1;
    assert_non_null(c.algorithm);
    for (int i = 0; i <= PLAN_BARRIER; i++) {
        c.collective = (plan_collective)i;
        for (int k = 0; k < count; k++) {
            c.per_host = ranks > 1 ? layouts[k] : 0;
            if (c.algorithm->supports(c.collective))
                each_chunking(c, each);
        }
    }
}

uint32_t plans_random(uint64_t *state, uint32_t below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}

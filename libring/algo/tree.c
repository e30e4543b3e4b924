/* SPDX-License-Identifier: Apache-2.0
 *
 * tree: sends sums up to the root and results down from it, in a pipeline of chunks. The ranks of a
 * host form a binary tree below their leader, and the leaders form a binary tree of hosts, so each
 * host has one edge to its parent host. Both trees are heaps: the children of position i are 2 i +
 * 1 and 2 i + 2.
 *
 * The root leads its host, and the root's host is the root of the tree of hosts. All other hosts
 * and ranks follow in order of their numbers. Each rank adds its children's sums to its own data,
 * those of children on other hosts first.
 */
#include "algo_build.h"

/* A rank's place: hosts are counted from the root's host, and positions from the host's leader. */
typedef struct place {
    int host, position;
} place;

enum { MOST_CHILDREN = 4 };

typedef struct tree {
    const plan_world *world;
    int root;
    place own;
    int parent;                  /* rank; -1 at the root */
    int children[MOST_CHILDREN]; /* ranks; leaders of other hosts come first */
    bool leaves[MOST_CHILDREN];  /* true for each child that has no children */
    int child_count;
} tree;

static int depth_of(int position)
{
    return 31 - __builtin_clz((unsigned)position + 1);
}

/* ---- Places ------------------------------------------------------------------------ */

static int host_number(const tree *t, int host)
{
    return (plan_host_of(t->world, t->root) + host) % t->world->hosts;
}

/* @return how many ranks of a host (by number) are below @p rank. */
static int ranks_before(const tree *t, int number, int rank)
{
    int count = t->world->host_of == NULL ? rank : 0;
    for (int i = 0; i < rank && t->world->host_of != NULL; i++)
        count += t->world->host_of[i] == number;
    return count;
}

static int size_of(const tree *t, int host)
{
    return ranks_before(t, host_number(t, host), t->world->ranks);
}

/* The root leads its host even if it is not the host's first rank. */
static int first_position(const tree *t, int host)
{
    return host == 0 ? ranks_before(t, host_number(t, 0), t->root) : 0;
}

static int rank_at(const tree *t, place at)
{
    const int number = host_number(t, at.host);
    int left = (first_position(t, at.host) + at.position) % size_of(t, at.host);
    if (t->world->host_of == NULL)
        return left;
    int rank = 0;
    while (t->world->host_of[rank] != number || left-- > 0)
        rank++;
    return rank;
}

/* ---- Edges ----------------------------------------------------------------------- */

static int children_of(const tree *t, place of, place *children)
{
    const int size = size_of(t, of.host);
    int count = 0;
    for (int i = 1; i <= 2 && of.position == 0; i++)
        if (2 * of.host + i < t->world->hosts)
            children[count++] = (place){2 * of.host + i, 0};
    for (int i = 1; i <= 2; i++)
        if (2 * of.position + i < size)
            children[count++] = (place){of.host, 2 * of.position + i};
    return count;
}

static int parent_of(const tree *t, place of)
{
    if (of.position > 0)
        return rank_at(t, (place){of.host, (of.position - 1) / 2});
    return of.host > 0 ? rank_at(t, (place){(of.host - 1) / 2, 0}) : -1;
}

static tree tree_of(const plan *p, const plan_world *world)
{
    tree t = {.world = world, .root = p->root};
    place children[MOST_CHILDREN], below[MOST_CHILDREN];
    const int hosts = world->hosts, number = plan_host_of(world, p->rank);
    const int host = (number - host_number(&t, 0) + hosts) % hosts, size = size_of(&t, host);
    const int position = ranks_before(&t, number, p->rank) - first_position(&t, host);
    t.own = (place){host, (position + size) % size};
    t.parent = parent_of(&t, t.own);
    t.child_count = children_of(&t, t.own, children);
    for (int i = 0; i < t.child_count; i++) {
        t.children[i] = rank_at(&t, children[i]);
        t.leaves[i] = children_of(&t, children[i], below) == 0;
    }
    return t;
}

/* ---- Steps for a chunk ------------------------------------------------------------- */

/* A rank receives a chunk (count / chunks elements) from its parent into dst, and sends it from
 * there to each child. The root sends from src. */
static void down(plan *p, const void *of, int chunk)
{
    const tree *t = of;
    if (t->parent >= 0)
        plan_recv(p, t->parent, PLAN_DST, chunk, 1);
    for (int i = 0; i < t->child_count; i++)
        plan_send(p, t->parent >= 0 ? PLAN_DST : PLAN_SRC, chunk, 1, t->children[i], PLAN_DST);
}

/* A leaf sends its chunk of src to the parent. Any other rank folds its own chunk and those of all
 * its children in one pass, and sends the sum to the parent; the root writes it to dst. */
static void up(plan *p, const void *of, int chunk)
{
    const tree *t = of;
    if (t->child_count == 0) {
        plan_send(p, PLAN_SRC, chunk, 1, t->parent, PLAN_WIRE);
        return;
    }
    plan_fold(p, chunk, 1);
    plan_fold_local(p, PLAN_SRC);
    for (int i = 0; i < t->child_count; i++)
        plan_fold_message(p, t->children[i], t->leaves[i] ? PLAN_WIRE_DATA : PLAN_WIRE_ACC);
    if (t->parent >= 0)
        plan_fold_to(p, t->parent, PLAN_WIRE);
    else
        plan_fold_into(p, PLAN_DST);
}

/* The root of an all-reduce folds a chunk, and sends the result down in the same pass. */
static void finish_and_return(plan *p, const void *of, int chunk)
{
    const tree *t = of;
    up(p, of, chunk);
    for (int i = 0; i < t->child_count; i++)
        plan_fold_to(p, t->children[i], PLAN_DST);
}

/* ---- Collectives ------------------------------------------------------------------- */

/* @param ways  passes through the tree: 1 for up or down, 2 for up and down. */
static void set_fill(plan *p, const tree *t, int ways)
{
    const int far = ways * depth_of(t->world->hosts - 1);
    const int hops = far + ways * depth_of(size_of(t, t->own.host) - 1);
    algo_fill(p, hops > 0 ? hops - 1 : 0, far);
}

static void wait_for_children(plan *p, const tree *t)
{
    for (int i = 0; i < t->child_count; i++)
        plan_wait(p, t->children[i], 0);
}

/* A chunk returns from the root 2 * depth hops after it went up, so a rank first sends 2 * depth
 * chunks up. Then it alternates: one chunk goes up, and one chunk comes down. */
static void write_all_reduce(plan *p, const tree *t)
{
    const int depth = depth_of(t->own.host) + depth_of(t->own.position);
    set_fill(p, t, 2);
    if (t->parent < 0) {
        algo_each_chunk(p, p->chunks, finish_and_return, t, 0);
        return;
    }
    algo_interleave(p, up, down, t, 0, p->chunks, 2 * depth);
    if (p->collective != PLAN_BARRIER)
        wait_for_children(p, t);
}

static void write_tree(plan *p, const plan_world *world)
{
    const tree t = tree_of(p, world);
    switch (p->collective) {
    case PLAN_BROADCAST:
        set_fill(p, &t, 1);
        algo_each_chunk(p, p->chunks, down, &t, 0);
        if (t.parent < 0)
            plan_copy(p, PLAN_SRC, 0, PLAN_DST, 0, p->chunks);
        wait_for_children(p, &t);
        break;
    case PLAN_REDUCE:
        set_fill(p, &t, 1);
        algo_each_chunk(p, p->chunks, up, &t, 0);
        if (t.child_count == 0)
            plan_wait(p, t.parent, 0);
        break;
    default: /* all-reduce; or a barrier, which is an all-reduce of no elements */
        write_all_reduce(p, &t);
    }
}

bool algo_tree_supports(plan_collective collective)
{
    return algo_shared_collective(collective) && collective != PLAN_ALL_GATHER &&
           collective != PLAN_REDUCE_SCATTER;
}

int algo_tree_chunks(plan_collective collective, const plan_world *world, size_t bytes)
{
    (void)world;
    return collective == PLAN_BARRIER ? 1 : algo_pipeline_chunks(bytes);
}

plan *algo_tree_build(const algo_call *call)
{
    return algo_build("tree", call, write_tree);
}

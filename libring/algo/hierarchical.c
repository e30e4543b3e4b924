/* SPDX-License-Identifier: Apache-2.0
 *
 * hierarchical: combines direct access among the ranks of a host with rings among hosts, which all
 * ranks of a host use at the same time. Each block of the vector goes round the hosts. On each host
 * one rank, the block's owner there, folds the block from all ranks of the host in one pass,
 * together with the sum from the previous host's owner. So only sums leave a host, and each sum
 * only once: in an all-reduce among H hosts, 2 (H - 1) / H of the vector leave each host, for any
 * number and placement of ranks.
 *
 * Each host has some of the blocks. Block i of a host starts at the next host and ends at the host
 * itself. On each host, the block's owner is the rank with index i modulo the number of ranks of
 * that host. In an all-reduce each host has as many blocks as hosts have ranks on average, so
 * owners share the work even if hosts differ. In collectives that have a block for each rank, those
 * blocks are used.
 *
 * A block of host h combines the ranks of host h + 1, then those of host h + 2, and so on, and
 * finally those of host h, one by one. With one rank on each host, this is the ring's order.
 *
 * A chunk of a block is sent on before the next chunk is folded, and sums between hosts are kept in
 * scratch. No operand is relayed, so long calls need not be sliced because of the links.
 */
#include "algo_build.h"

#include <stdlib.h>

typedef struct team {
    plan *p;
    const plan_world *world;
    int32_t *first, *members; /* ranks of a host: members[first[host]] to [first[host + 1]] */
    int host, index, size;    /* this rank's host, its index there, and the host's ranks */
    int columns, parts;       /* blocks of a host of average size; chunks of a block     */
} team;

/* ---- Places ------------------------------------------------------------------------ */

static void list_members(team *t)
{
    const plan_world *world = t->world;
    for (int rank = 0; rank < world->ranks; rank++)
        t->first[plan_host_of(world, rank) + 1]++;
    for (int host = 0; host < world->hosts; host++)
        t->first[host + 1] += t->first[host];
    for (int rank = world->ranks - 1; rank >= 0; rank--) /* each entry moves to its host's start */
        t->members[--t->first[plan_host_of(world, rank) + 1]] = rank;
    for (int host = 0; host < world->hosts; host++) /* moves the starts one entry down */
        t->first[host] = t->first[host + 1];
    t->first[world->hosts] = world->ranks;
}

static int size_of(const team *t, int host)
{
    return t->first[host + 1] - t->first[host];
}

static int member(const team *t, int host, int index)
{
    return t->members[t->first[host] + index];
}

static int host_after(const team *t, int hops)
{
    return (t->host + hops + t->world->hosts) % t->world->hosts;
}

static int owner(const team *t, int host, int block)
{
    return member(t, host, block % size_of(t, host));
}

static int next_owner(const team *t, int block)
{
    return owner(t, host_after(t, 1), block);
}

static int previous_owner(const team *t, int block)
{
    return owner(t, host_after(t, -1), block);
}

/* ---- Blocks ---------------------------------------------------------------------- */

static bool has_block_per_rank(plan_collective collective)
{
    return collective == PLAN_REDUCE_SCATTER || collective == PLAN_ALL_GATHER;
}

static int columns_of(const plan_world *world)
{
    return world->ranks / world->hosts;
}

static int blocks_in_all(plan_collective collective, const plan_world *world)
{
    if (has_block_per_rank(collective))
        return world->ranks;
    return columns_of(world) * (collective == PLAN_ALL_REDUCE ? world->hosts : 1);
}

static int blocks_of(const team *t, int host)
{
    return has_block_per_rank(t->p->collective) ? size_of(t, host) : t->columns;
}

/* All blocks of a rooted collective belong to the root's host, and one part of all of them is a
 * range of chunks. */
static int chunk_of(const team *t, int host, int block, int part)
{
    if (plan_facts_of(t->p->collective)->rooted)
        return part * t->columns + block;
    const bool all = has_block_per_rank(t->p->collective);
    return (all ? member(t, host, block) : host * t->columns + block) * t->parts + part;
}

/* ---- Towards a block's host ---------------------------------------------------------- */

/* Handles one part of each block of the host that is @p hops before this host: sends this rank's
 * chunks of src to the ranks of this host that own the blocks here. */
static void give(const team *t, int hops, int part)
{
    const int home = host_after(t, -hops), blocks = blocks_of(t, home);
    for (int i = 1; i < t->size; i++) {
        const int index = (t->index + i) % t->size;
        for (int block = index; block < blocks; block += t->size)
            plan_send(t->p, PLAN_SRC, chunk_of(t, home, block, part), 1, member(t, t->host, index),
                      PLAN_WIRE);
    }
}

/* Adds the ranks of this host to the fold. After ALGO_MAX_OPERANDS inputs another fold continues
 * from the sum so far. */
static void fold_members(const team *t, int chunk, int operands)
{
    for (int i = 0; i < t->size; i++, operands++) {
        const int rank = member(t, t->host, i);
        if (operands == ALGO_MAX_OPERANDS) {
            plan_fold_into(t->p, PLAN_SCRATCH);
            plan_fold(t->p, chunk, 1);
            plan_fold_local(t->p, PLAN_SCRATCH);
            operands = 1;
        }
        if (rank == t->p->rank)
            plan_fold_local(t->p, PLAN_SRC);
        else
            plan_fold_message(t->p, rank, PLAN_WIRE_DATA);
    }
}

/* One hop of a chunk of a partial sum: folds the previous owner's sum (from hop 2 on) and the src
 * of all ranks of this host into scratch, and sends the sum to the next owner. The last hop
 * finishes the sum. On the first host, a rank that is alone on its host only sends its src. */
static void fold_block(const team *t, int hops, int block, int chunk)
{
    const bool begins = hops == 1, ends = hops == t->world->hosts;
    const bool plain = hops == 2 && size_of(t, host_after(t, -1)) == 1;
    if (begins && !ends && t->size == 1) {
        plan_send(t->p, PLAN_SRC, chunk, 1, next_owner(t, block), PLAN_WIRE);
        return;
    }
    plan_fold(t->p, chunk, 1);
    if (!begins)
        plan_fold_message(t->p, previous_owner(t, block), plain ? PLAN_WIRE_DATA : PLAN_WIRE_ACC);
    fold_members(t, chunk, begins ? 0 : 1);
    if (ends) {
        if (t->p->collective == PLAN_REDUCE && t->p->rank != t->p->root)
            plan_fold_to(t->p, t->p->root, PLAN_DST);
        else
            plan_fold_into(t->p, PLAN_DST);
        return;
    }
    plan_fold_into(t->p, PLAN_SCRATCH);
    plan_send(t->p, PLAN_SCRATCH, chunk, 1, next_owner(t, block), PLAN_WIRE);
}

/* Hop @p hops of partial sums: this rank folds one part of each block that it owns, of the host
 * that is @p hops before this host. */
static void combine(const team *t, int hops, int part)
{
    const int home = host_after(t, -hops), blocks = blocks_of(t, home);
    for (int block = t->index; block < blocks; block += t->size)
        fold_block(t, hops, block, chunk_of(t, home, block, part));
}

/* ---- Away from a block's host -------------------------------------------------------- */

/* Sends chunks to the other ranks of this host, beginning at the next one. */
static void hand_to_members(const team *t, plan_buffer from, int chunk, int chunks)
{
    for (int i = 1; i < t->size; i++)
        plan_send(t->p, from, chunk, chunks, member(t, t->host, (t->index + i) % t->size),
                  PLAN_DST);
}

static void pass_on(const team *t, int hops, plan_buffer from, int block, int chunk)
{
    if (hops < t->world->hosts - 1)
        plan_send(t->p, from, chunk, 1, next_owner(t, block), PLAN_DST);
}

/* Hop @p hops of the results: an owner receives a chunk from the previous host's owner. It sends
 * the chunk first to the next host's owner, because the wire is slowest, and then to the ranks of
 * this host. At the end, the rank receives the other owners' chunks. */
static void gather(const team *t, int hops, int part)
{
    const int home = host_after(t, -hops), blocks = blocks_of(t, home);
    const bool own = hops == 0 && t->p->collective == PLAN_ALL_GATHER;
    for (int block = t->index; block < blocks; block += t->size) {
        const int chunk = chunk_of(t, home, block, part);
        if (hops > 0)
            plan_recv(t->p, previous_owner(t, block), PLAN_DST, chunk, 1);
        pass_on(t, hops, own ? PLAN_SRC : PLAN_DST, block, chunk);
        hand_to_members(t, own ? PLAN_SRC : PLAN_DST, chunk, 1);
    }
    for (int i = 1; i < t->size; i++) {
        const int index = (t->index - i + t->size) % t->size;
        for (int block = index; block < blocks; block += t->size)
            plan_recv(t->p, member(t, t->host, index), PLAN_DST, chunk_of(t, home, block, part), 1);
    }
}

/* Broadcast on the root's host: the root sends all blocks to the ranks of its host, and the owners
 * there send theirs to the next host. */
static void spread(const team *t, int part)
{
    const bool is_root = t->p->rank == t->p->root;
    const int first = chunk_of(t, t->host, 0, part);
    if (!is_root)
        plan_recv(t->p, t->p->root, PLAN_DST, first, t->columns);
    for (int block = t->index; block < t->columns; block += t->size)
        pass_on(t, 0, is_root ? PLAN_SRC : PLAN_DST, block, first + block);
    if (is_root)
        hand_to_members(t, PLAN_SRC, first, t->columns);
}

/* ---- Waits for messages that no later message proves to be taken ------------------------ */

static void wait_for_owners(const team *t, int owners)
{
    for (int i = 1; i < t->size; i++) {
        const int index = (t->index + i) % t->size;
        if (index < owners)
            plan_wait(t->p, member(t, t->host, index), 0);
    }
}

/* @return the last hop in which the rank with that index on this host sends blocks. */
static int last_hop(const team *t, int index)
{
    int hops = t->world->hosts - 1;
    while (hops > 0 && index >= blocks_of(t, host_after(t, -hops)))
        hops--;
    return hops;
}

/* @return the largest number of blocks of a host, leaving out @p host, whose blocks are not sent to
 * the next host. */
static int most_blocks(const team *t, int host)
{
    int most = 0;
    for (int i = 1; i < t->world->hosts; i++) {
        const int blocks = blocks_of(t, (host + i) % t->world->hosts);
        most = blocks > most ? blocks : most;
    }
    return most;
}

static void wait_for_next(const team *t, int blocks)
{
    const int size = size_of(t, host_after(t, 1));
    for (int block = t->index; block < blocks; block += t->size) {
        bool known = false;
        for (int before = t->index; before < block && !known; before += t->size)
            known = before % size == block % size;
        if (known) /* owners repeat from here on */
            return;
        plan_wait(t->p, next_owner(t, block), 0);
    }
}

/* ---- Collectives ------------------------------------------------------------------- */

typedef void (*stage)(const team *t, int hops, int part);

static void each_part(const team *t, int from, int to, stage steps)
{
    for (int hops = from; hops <= to; hops++)
        for (int part = 0; part < t->parts; part++)
            steps(t, hops, part);
}

/* (1) Every rank sends its chunks to their owners on its host. (2) Partial sums make H hops. (3)
 * Results make H hops. The result of an owner proves that it has folded the chunks that it was
 * sent. */
static void all_reduce(const team *t)
{
    const int hosts = t->world->hosts;
    each_part(t, 1, hosts, give);
    each_part(t, 1, hosts, combine);
    each_part(t, 0, hosts - 1, gather);
    if (t->index < t->columns)
        wait_for_owners(t, t->size);
    wait_for_next(t, most_blocks(t, t->host));
}

static void reduce_scatter(const team *t)
{
    each_part(t, 1, t->world->hosts, give);
    each_part(t, 1, t->world->hosts, combine);
    wait_for_owners(t, t->size);
    wait_for_next(t, most_blocks(t, t->host));
}

static void all_gather(const team *t)
{
    const int own = t->p->rank * t->parts, last = last_hop(t, t->index);
    each_part(t, 0, 0, gather);
    plan_copy(t->p, PLAN_SRC, own, PLAN_DST, own, t->parts);
    each_part(t, 1, t->world->hosts - 1, gather);
    /* A member that sends blocks after this rank's last ones proves that it has taken this
     * rank's blocks; the rank waits for the other members. */
    for (int i = 1; i < t->size; i++) {
        const int index = (t->index + i) % t->size;
        if (last_hop(t, index) <= last)
            plan_wait(t->p, member(t, t->host, index), 0);
    }
    wait_for_next(t, most_blocks(t, host_after(t, 1)));
}

static int hops_from_root(const team *t)
{
    const int hosts = t->world->hosts;
    return (t->host - plan_host_of(t->world, t->p->root) + hosts) % hosts;
}

static void broadcast(const team *t)
{
    const int hops = hops_from_root(t);
    const bool is_root = t->p->rank == t->p->root;
    algo_fill(t->p, t->world->hosts, t->world->hosts - 1);
    for (int part = 0; part < t->parts; part++) {
        if (hops == 0)
            spread(t, part);
        else
            gather(t, hops, part);
    }
    if (is_root)
        plan_copy(t->p, PLAN_SRC, 0, PLAN_DST, 0, t->p->chunks);
    if (is_root || (hops > 0 && t->index < t->columns))
        wait_for_owners(t, t->size);
    if (hops < t->world->hosts - 1)
        wait_for_next(t, t->columns);
}

/* The root need not wait, because the results prove that its chunks have been folded. */
static void reduce(const team *t)
{
    const int hosts = t->world->hosts, hops = hops_from_root(t) > 0 ? hops_from_root(t) : hosts;
    const bool is_root = t->p->rank == t->p->root;
    algo_fill(t->p, hosts, hosts - 1);
    each_part(t, hops, hops, give);
    each_part(t, hops, hops, combine);
    for (int part = 0; part < t->parts && is_root; part++)
        for (int block = 0; block < t->columns; block++)
            if (owner(t, t->host, block) != t->p->rank)
                plan_recv(t->p, owner(t, t->host, block), PLAN_DST,
                          chunk_of(t, t->host, block, part), 1);
    if (!is_root)
        wait_for_owners(t, t->columns);
    if (hops < hosts)
        wait_for_next(t, t->columns);
}

static void write_hierarchical(plan *p, const plan_world *world)
{
    static void (*const parts[])(const team *t) = {
        [PLAN_ALL_REDUCE] = all_reduce, [PLAN_REDUCE_SCATTER] = reduce_scatter,
        [PLAN_ALL_GATHER] = all_gather, [PLAN_BROADCAST] = broadcast,
        [PLAN_REDUCE] = reduce,
    };
    team t = {.p = p,
              .world = world,
              .first = calloc((size_t)world->hosts + 1, sizeof *t.first),
              .members = calloc((size_t)world->ranks, sizeof *t.members),
              .host = plan_host_of(world, p->rank),
              .columns = columns_of(world),
              .parts = p->chunks / blocks_in_all(p->collective, world)};
    p->failed |= t.first == NULL || t.members == NULL;
    if (!p->failed) {
        list_members(&t);
        t.size = size_of(&t, t.host);
        while (member(&t, t.host, t.index) != p->rank)
            t.index++;
        parts[p->collective](&t);
    }
    free(t.first);
    free(t.members);
}

bool algo_hierarchical_supports(plan_collective collective)
{
    return algo_shared_collective(collective) && collective != PLAN_BARRIER;
}

int algo_hierarchical_chunks(plan_collective collective, const plan_world *world, size_t bytes)
{
    enum { MOST = 4 }; /* a few chunks keep the wire busy while the next ones are folded */
    const int blocks = blocks_in_all(collective, world);
    const int parts = algo_pipeline_chunks(bytes / (size_t)blocks);
    return blocks * (parts < MOST || plan_facts_of(collective)->rooted ? parts : MOST);
}

plan *algo_hierarchical_build(const algo_call *call)
{
    return algo_build("hierarchical", call, write_hierarchical);
}

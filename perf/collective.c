/* SPDX-License-Identifier: Apache-2.0
 *
 * Has the table of collectives and computes the sizes of their buffers. Counts are whole elements
 * per rank. Unlike nccl-tests, ringperf does not round blocks down to 16 bytes, so that it also
 * measures and checks sizes that are not multiples of the number of ranks.
 */
#include "collective.h"
#include "names.h"
#include "try.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

static double factor_once_round(int ranks)
{
    return (double)(ranks - 1) / ranks;
}

static double factor_twice_round(int ranks)
{
    return 2.0 * (ranks - 1) / ranks;
}

static ring_status run_all_reduce(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                  const ring_call *call)
{
    return ring_all_reduce(src, dst, c->count, c->dtype, c->op, comm, call);
}

static ring_status run_reduce_scatter(const perf_case *c, const void *src, void *dst,
                                      ring_comm *comm, const ring_call *call)
{
    return ring_reduce_scatter(src, dst, c->count, c->dtype, c->op, comm, call);
}

static ring_status run_all_gather(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                  const ring_call *call)
{
    return ring_all_gather(src, dst, c->count, c->dtype, comm, call);
}

static ring_status run_broadcast(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                 const ring_call *call)
{
    return ring_broadcast(src, dst, c->count, c->dtype, c->root, comm, call);
}

static ring_status run_reduce(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                              const ring_call *call)
{
    return ring_reduce(src, dst, c->count, c->dtype, c->op, c->root, comm, call);
}

static ring_status run_gather(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                              const ring_call *call)
{
    return ring_gather(src, dst, c->count, c->dtype, c->root, comm, call);
}

static ring_status run_scatter(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                               const ring_call *call)
{
    return ring_scatter(src, dst, c->count, c->dtype, c->root, comm, call);
}

static ring_status run_all_to_all(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                  const ring_call *call)
{
    return ring_all_to_all(src, dst, c->count, c->dtype, comm, call);
}

static ring_status run_scan(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                            const ring_call *call)
{
    return ring_scan(src, dst, c->count, c->dtype, c->op, comm, call);
}

static ring_status run_exscan(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                              const ring_call *call)
{
    return ring_exscan(src, dst, c->count, c->dtype, c->op, comm, call);
}

static ring_status run_all_gather_v(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                    const ring_call *call)
{
    return ring_all_gather_v(src, dst, c->counts, NULL, c->dtype, comm, call);
}

static ring_status run_reduce_scatter_v(const perf_case *c, const void *src, void *dst,
                                        ring_comm *comm, const ring_call *call)
{
    return ring_reduce_scatter_v(src, c->counts, NULL, dst, c->dtype, c->op, comm, call);
}

static ring_status run_all_to_all_v(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                    const ring_call *call)
{
    return ring_all_to_all_v(src, c->counts, NULL, dst, c->counts, NULL, c->dtype, comm, call);
}

static ring_status run_gather_v(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                const ring_call *call)
{
    return ring_gather_v(src, c->count, dst, c->counts, NULL, c->dtype, c->root, comm, call);
}

static ring_status run_scatter_v(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                 const ring_call *call)
{
    return ring_scatter_v(src, c->counts, NULL, dst, c->count, c->dtype, c->root, comm, call);
}

/* @return the addresses of the blocks in a buffer, which are written to c->lists. */
static void **list_of(const perf_case *c, const void *at, bool is_dst)
{
    void **list = c->lists + (is_dst ? c->ranks : 0);
    const size_t bytes = c->count * ring_dtype_size(c->dtype);
    for (int rank = 0; rank < c->ranks; rank++)
        list[rank] = (char *)(uintptr_t)at + (size_t)rank * bytes;
    return list;
}

static const void *const *src_list(const perf_case *c, const void *src)
{
    return (const void *const *)list_of(c, src, false);
}

static ring_status run_all_gather_list(const perf_case *c, const void *src, void *dst,
                                       ring_comm *comm, const ring_call *call)
{
    return ring_all_gather_list(src, list_of(c, dst, true), c->counts, c->dtype, comm, call);
}

static ring_status run_reduce_scatter_list(const perf_case *c, const void *src, void *dst,
                                           ring_comm *comm, const ring_call *call)
{
    return ring_reduce_scatter_list(src_list(c, src), c->counts, dst, c->dtype, c->op, comm, call);
}

static ring_status run_all_to_all_list(const perf_case *c, const void *src, void *dst,
                                       ring_comm *comm, const ring_call *call)
{
    return ring_all_to_all_list(src_list(c, src), c->counts, list_of(c, dst, true), c->counts,
                                c->dtype, comm, call);
}

static ring_status run_gather_list(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                   const ring_call *call)
{
    return ring_gather_list(src, c->count, list_of(c, dst, true), c->counts, c->dtype, c->root,
                            comm, call);
}

static ring_status run_scatter_list(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                    const ring_call *call)
{
    return ring_scatter_list(src_list(c, src), c->counts, dst, c->count, c->dtype, c->root, comm,
                             call);
}

static ring_status run_barrier(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                               const ring_call *call)
{
    (void)c, (void)src, (void)dst;
    return ring_barrier(comm, call);
}

static int next_rank(const perf_case *c)
{
    return (c->rank + 1) % c->ranks;
}

static int previous_rank(const perf_case *c)
{
    return (c->rank + c->ranks - 1) % c->ranks;
}

/* Every rank sends to the next one and receives from the previous one. The two calls are a group,
 * because on a GPU neither completes without the other. */
static ring_status run_sendrecv(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                                const ring_call *call)
{
    RING_TRY(ring_group_start());
    ring_status status = ring_send(src, c->count, c->dtype, next_rank(c), comm, call);
    if (status == RING_OK)
        status = ring_recv(dst, c->count, c->dtype, previous_rank(c), comm, call);
    const ring_status ended = ring_group_end();
    return status != RING_OK ? status : ended;
}

static perf_expect expect_reduced(const perf_case *c, int block)
{
    (void)block;
    return (perf_expect){0, c->ranks, 0};
}

static perf_expect expect_own_block(const perf_case *c, int block)
{
    (void)block;
    return (perf_expect){0, c->ranks, (size_t)c->rank * c->count};
}

static perf_expect expect_prefix(const perf_case *c, int block)
{
    (void)block;
    return (perf_expect){0, c->rank + 1, 0};
}

static perf_expect expect_ranks_before(const perf_case *c, int block)
{
    (void)block;
    return (perf_expect){0, c->rank, 0};
}

static perf_expect expect_every_rank(const perf_case *c, int block)
{
    (void)c;
    return (perf_expect){block, 1, 0};
}

static perf_expect expect_root(const perf_case *c, int block)
{
    (void)block;
    return (perf_expect){c->root, 1, 0};
}

static perf_expect expect_reduced_on_root(const perf_case *c, int block)
{
    (void)block;
    return (perf_expect){0, c->rank == c->root ? c->ranks : 0, 0};
}

static perf_expect expect_every_rank_on_root(const perf_case *c, int block)
{
    return (perf_expect){block, c->rank == c->root, 0};
}

static perf_expect expect_block_of_root(const perf_case *c, int block)
{
    (void)block;
    return (perf_expect){c->root, 1, (size_t)c->rank * c->count};
}

static perf_expect expect_block_of_every_rank(const perf_case *c, int block)
{
    return (perf_expect){block, 1, (size_t)c->rank * c->count};
}

static perf_expect expect_previous(const perf_case *c, int block)
{
    (void)block;
    return (perf_expect){previous_rank(c), 1, 0};
}

static const perf_collective collectives[] = {
    {.name = "all_reduce",
     .reduces = true,
     .bus_factor = factor_twice_round,
     .run = run_all_reduce,
     .expect = expect_reduced},
    {.name = "reduce_scatter",
     .reduces = true,
     .src_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_reduce_scatter,
     .expect = expect_own_block},
    {.name = "all_gather",
     .dst_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_all_gather,
     .expect = expect_every_rank},
    {.name = "broadcast", .rooted = true, .run = run_broadcast, .expect = expect_root},
    {.name = "reduce",
     .reduces = true,
     .rooted = true,
     .run = run_reduce,
     .expect = expect_reduced_on_root},
    {.name = "gather",
     .rooted = true,
     .dst_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_gather,
     .expect = expect_every_rank_on_root},
    {.name = "scatter",
     .rooted = true,
     .src_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_scatter,
     .expect = expect_block_of_root},
    {.name = "all_to_all",
     .apart = true,
     .src_blocks = true,
     .dst_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_all_to_all,
     .expect = expect_block_of_every_rank},
    {.name = "scan", .reduces = true, .prefix = true, .run = run_scan, .expect = expect_prefix},
    {.name = "exscan",
     .reduces = true,
     .prefix = true,
     .run = run_exscan,
     .expect = expect_ranks_before},
    {.name = "all_gather_v",
     .dst_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_all_gather_v,
     .expect = expect_every_rank},
    {.name = "reduce_scatter_v",
     .reduces = true,
     .src_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_reduce_scatter_v,
     .expect = expect_own_block},
    {.name = "all_to_all_v",
     .apart = true,
     .src_blocks = true,
     .dst_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_all_to_all_v,
     .expect = expect_block_of_every_rank},
    {.name = "gather_v",
     .rooted = true,
     .dst_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_gather_v,
     .expect = expect_every_rank_on_root},
    {.name = "scatter_v",
     .rooted = true,
     .src_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_scatter_v,
     .expect = expect_block_of_root},
    {.name = "all_gather_list",
     .dst_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_all_gather_list,
     .expect = expect_every_rank},
    {.name = "reduce_scatter_list",
     .reduces = true,
     .src_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_reduce_scatter_list,
     .expect = expect_own_block},
    {.name = "all_to_all_list",
     .apart = true,
     .src_blocks = true,
     .dst_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_all_to_all_list,
     .expect = expect_block_of_every_rank},
    {.name = "gather_list",
     .rooted = true,
     .dst_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_gather_list,
     .expect = expect_every_rank_on_root},
    {.name = "scatter_list",
     .rooted = true,
     .src_blocks = true,
     .bus_factor = factor_once_round,
     .run = run_scatter_list,
     .expect = expect_block_of_root},
    {.name = "sendrecv",
     .apart = true,
     .pair = true,
     .run = run_sendrecv,
     .expect = expect_previous},
    {.name = "barrier", .apart = true, .empty = true, .run = run_barrier, .expect = expect_reduced},
};

#define COLLECTIVES (sizeof collectives / sizeof *collectives)

const perf_collective *perf_collective_at(size_t i)
{
    return i < COLLECTIVES ? &collectives[i] : NULL;
}

const perf_collective *perf_collective_find(const char *name)
{
    char word[64];
    const int length = snprintf(word, sizeof word, "%s", name + (strncmp(name, "nccl", 4) ? 0 : 4));
    if (length > 5 && length < (int)sizeof word && strcmp(word + length - 5, "_perf") == 0)
        word[length - 5] = '\0';
    for (size_t i = 0; i < COLLECTIVES; i++)
        if (words_alike(collectives[i].name, word))
            return &collectives[i];
    return words_alike("bcast", word) ? perf_collective_find("broadcast") : NULL;
}

bool perf_serves(const perf_collective *collective, ring_dtype dtype, ring_op op)
{
    return ring_op_serves(op, dtype) && !(collective->prefix && op == RING_AVG);
}

size_t perf_count(const perf_collective *collective, size_t bytes, size_t element, int ranks)
{
    if (collective->empty)
        return 0;
    const bool blocks = collective->src_blocks || collective->dst_blocks;
    return bytes / element / (blocks ? (size_t)ranks : 1);
}

size_t perf_src_elements(const perf_case *c)
{
    return c->collective->src_blocks ? c->count * (size_t)c->ranks : c->count;
}

size_t perf_dst_elements(const perf_case *c)
{
    return c->collective->dst_blocks ? c->count * (size_t)c->ranks : c->count;
}

size_t perf_case_bytes(const perf_case *c)
{
    const size_t src = perf_src_elements(c), dst = perf_dst_elements(c);
    return (src > dst ? src : dst) * ring_dtype_size(c->dtype);
}

size_t perf_src_in_place(const perf_case *c)
{
    return c->collective->dst_blocks ? (size_t)c->rank * c->count : 0;
}

size_t perf_dst_in_place(const perf_case *c)
{
    return c->collective->src_blocks ? (size_t)c->rank * c->count : 0;
}

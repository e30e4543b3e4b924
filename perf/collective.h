/* SPDX-License-Identifier: Apache-2.0
 *
 * collective: one table row for each collective: the shape of its buffers, its bandwidth factor,
 * its call and its expected output. To add one: a row here; it is then timed, checked and printed
 * like the others.
 */
#ifndef PERF_COLLECTIVE_H
#define PERF_COLLECTIVE_H

#include <ring/ring.h>
#include <stdbool.h>

typedef struct perf_collective perf_collective;

/** One call of one rank. */
typedef struct perf_case {
    const perf_collective *collective;
    ring_dtype dtype;
    ring_op op;
    int root, rank, ranks;
    size_t count;         /* the call's count: elements of one block */
    const size_t *counts; /* [ranks] for v-forms: all of them `count` */
    void **lists;         /* [2 * ranks] for lists: room for the blocks' addresses, src first */
    bool in_place;
} perf_case;

/** Expected output of one block: the combined inputs of ranks [first_rank, first_rank + ranks),
 *  from element first_index on. ranks 0: its contents before the call. */
typedef struct perf_expect {
    int first_rank, ranks;
    size_t first_index;
} perf_expect;

struct perf_collective {
    const char *name;
    bool reduces, rooted;            /* takes an operation, takes a root */
    bool empty;                      /* has no buffers */
    bool prefix;                     /* combines the ranks up to its own: no average */
    bool src_blocks, dst_blocks;     /* the buffer holds one block a rank, not one block */
    bool apart;                      /* cannot be called in place */
    bool pair;                       /* a send and a receive of two ranks, not one call of all */
    double (*bus_factor)(int ranks); /* busbw = algbw * factor, as nccl-tests defines it; NULL: 1 */
    ring_status (*run)(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                       const ring_call *call);
    perf_expect (*expect)(const perf_case *c, int block);
};

/** @return the collective of that name, or of NCCL's and nccl-tests': "all_reduce", "allreduce",
 *  "all_reduce_perf", "ncclAllReduce"; NULL if unknown. */
const perf_collective *perf_collective_find(const char *name);
/** @return the i-th collective, NULL after the last. */
const perf_collective *perf_collective_at(size_t i);

/** @return true if the operation is for the collective, and for the type. */
bool perf_serves(const perf_collective *collective, ring_dtype dtype, ring_op op);
/** @return the largest count whose buffers are at most @p bytes. */
size_t perf_count(const perf_collective *collective, size_t bytes, size_t element, int ranks);
/** Elements of the buffers, and their larger one in bytes (nccl-tests' "size"). */
size_t perf_src_elements(const perf_case *c);
size_t perf_dst_elements(const perf_case *c);
size_t perf_case_bytes(const perf_case *c);
/** Where the input lies in the output buffer of an in-place call, or the other way round
 *  (elements from the start of the larger one). */
size_t perf_src_in_place(const perf_case *c);
size_t perf_dst_in_place(const perf_case *c);

#endif

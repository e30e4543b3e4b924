/* SPDX-License-Identifier: Apache-2.0
 *
 * collective: describes each collective by a table row, which has the shape of its buffers, its
 * bandwidth factor, its call and its expected output. To add a collective, add a row; it is then
 * timed, checked and printed like the others.
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
    const size_t *counts; /* [ranks] for v-forms; all entries are `count` */
    void **lists; /* [2 * ranks] for list forms: room for the addresses of the blocks of src,
                     then those of dst */
    bool in_place;
} perf_case;

/** The expected output of one block: the combined inputs of ranks [first_rank, first_rank + ranks),
 *  from element first_index on. If ranks is 0, the block must be unchanged by the call. */
typedef struct perf_expect {
    int first_rank, ranks;
    size_t first_index;
} perf_expect;

struct perf_collective {
    const char *name;
    bool reduces, rooted;            /* takes an operation; takes a root */
    bool empty;                      /* has no buffers */
    bool prefix;                     /* combines the ranks up to this one, so it has no average */
    bool src_blocks, dst_blocks;     /* the buffer has a block for each rank; false: one block */
    bool apart;                      /* cannot be called in place */
    bool pair;                       /* is a send and a receive, not one call of all ranks */
    double (*bus_factor)(int ranks); /* busbw = algbw * factor, as nccl-tests defines it; NULL: 1 */
    /** Makes one call. @return its status. */
    ring_status (*run)(const perf_case *c, const void *src, void *dst, ring_comm *comm,
                       const ring_call *call);
    /** @return the expected output of block @p block of dst. */
    perf_expect (*expect)(const perf_case *c, int block);
};

/** @return the collective with that name, which may be libring's, NCCL's or nccl-tests':
 *  "all_reduce", "allreduce", "ncclAllReduce", "all_reduce_perf"; NULL if the name is unknown. */
const perf_collective *perf_collective_find(const char *name);
/** @return the i-th collective, NULL after the last. */
const perf_collective *perf_collective_at(size_t i);

/** @return true if the operation can be used with the collective and with the type. */
bool perf_serves(const perf_collective *collective, ring_dtype dtype, ring_op op);
/** @return the largest count for which both buffers have at most @p bytes.
 *  @param element  bytes of an element */
size_t perf_count(const perf_collective *collective, size_t bytes, size_t element, int ranks);
/** @return the number of elements of a buffer. */
size_t perf_src_elements(const perf_case *c);
size_t perf_dst_elements(const perf_case *c);
/** @return the bytes of the larger buffer, which nccl-tests calls "size". */
size_t perf_case_bytes(const perf_case *c);
/** @return the element at which src (or dst) begins in the one buffer of a call in place. */
size_t perf_src_in_place(const perf_case *c);
size_t perf_dst_in_place(const perf_case *c);

#endif

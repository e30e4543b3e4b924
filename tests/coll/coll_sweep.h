/* SPDX-License-Identifier: Apache-2.0
 * The parts of the sweep: which cases (sweep_cases.c), one case (sweep_case.c), the program
 * (coll_sweep.c). */
#ifndef RING_TEST_SWEEP_H
#define RING_TEST_SWEEP_H

#include "collective_oracle.h"

typedef enum sweep_kind {
    SWEEP_ALL_REDUCE,
    SWEEP_REDUCE_SCATTER,
    SWEEP_ALL_GATHER,
    SWEEP_BROADCAST,
    SWEEP_REDUCE,
    SWEEP_GATHER,
    SWEEP_SCATTER,
    SWEEP_ALL_TO_ALL,
    SWEEP_SCAN,
    SWEEP_EXSCAN,
    SWEEP_KINDS
} sweep_kind;

typedef struct sweep_case {
    int ranks;
    sweep_kind kind;
    ring_dtype dtype;
    ring_op op;
    size_t count;
    bool in_place, shared;
    oracle_data data;
    int root;
    unsigned seed;
} sweep_case;

typedef struct sweep_cases {
    sweep_case *all;
    size_t count;
} sweep_cases;

typedef enum sweep_mode { SWEEP_SAMPLE, SWEEP_PAIRWISE, SWEEP_FULL } sweep_mode;

/** Memory of the cases that are not `shared`. */
typedef enum sweep_memory {
    SWEEP_PLAIN,
    SWEEP_REGISTERED,
    SWEEP_FAR,  /* only in a program that is linked with tests/doubles */
    SWEEP_CUDA, /* of a GPU, over the double of its driver; likewise */
    SWEEP_MEMORIES
} sweep_memory;

/** Expected transport, algorithm and memory of the calls: another one means an untested case. */
typedef struct sweep_target {
    const char *transport, *algorithm; /* "": any */
    bool reproducible;                 /* combined in the order of ranks */
    sweep_memory memory;
    int hosts;        /* that ranks are on, in turn             */
    const char *wire; /* the transport between hosts            */
    bool stream;      /* calls are on a stream of the GPU                        */
    bool mixed;       /* but only on every other rank                            */
    bool by_host;     /* the host drives calls on memory of GPUs: these cannot   */
    int devices;      /* that ranks use in turn                                  */
} sweep_target;

/** A buffer with guards at both ends. Calls get `at`; the test reads and writes it through `view`,
 *  which is elsewhere if the memory is far. */
typedef struct guarded {
    unsigned char *at, *view;
    size_t bytes;
    bool shared;
    sweep_memory memory;
} guarded;

guarded guarded_new(size_t bytes, bool shared, sweep_memory memory);
void guarded_free(guarded *g);
bool guarded_intact(const guarded *g);
/** From the view to where the call finds it, and back. */
void guarded_push(const guarded *g);
void guarded_pull(const guarded *g);
/** @return true if the host cannot touch such memory. */
static inline bool sweep_is_far(sweep_memory memory)
{
    return memory == SWEEP_FAR || memory == SWEEP_CUDA;
}
/** @return false: this program has no far memory. */
bool sweep_has_far(void);
/** Starts the double's GPU process, which is forked: before there are threads. */
void sweep_start_gpu(void);
/** The calling thread uses the GPU from now on. */
void sweep_use_gpu(int device);
/** A stream of it, and the end of all that was asked of that. */
void *sweep_stream_new(void);
void sweep_stream_end(void *stream);

bool sweep_reduces(sweep_kind kind);
/** Of the ranks up to one's own, or before it. */
bool sweep_is_prefix(sweep_kind kind);
bool sweep_has_root(sweep_kind kind);
/** Blocks of `count` elements, one a rank, in src or in dst. */
bool sweep_has_blocks(sweep_kind kind);

/** The cases of a mode for communicators of the given sizes; free all. */
sweep_cases sweep_list(sweep_mode mode, const int *ranks, int rank_count);

/** Runs one case and checks it. Collective. @return 0 if this rank found nothing wrong. */
int sweep_run(const sweep_case *c, const sweep_target *target, int rank, ring_comm *comm);

#endif

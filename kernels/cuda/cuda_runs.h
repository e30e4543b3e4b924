/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_runs: runs of programs on a GPU, by a rank alone or by all ranks of its group.
 */
#ifndef RING_CUDA_RUNS_H
#define RING_CUDA_RUNS_H

#include "accelerator_programs.h"
#include "cuda_memory.h"
#include "program_args.h"

#include <pthread.h>

enum { SEAT_LANES_MOST = 64 };

/** Of a seat, in pinned memory. Numbers are those of runs. */
typedef struct seat_words {
    _Atomic uint64_t abort;
    _Atomic uint32_t arrived; /* the rank's stream has come to that run        */
    _Atomic uint32_t passed;  /* and behind it                                 */
    device_verdict verdicts[SEAT_LANES_MOST];
} seat_words;

/** A run that not all ranks of the group have come to. */
typedef struct pending_launch {
    struct pending_launch *next;
    uint32_t number;
    int arrived;
    CUfunction function;
    program_args args;
} pending_launch;

/** Seats of one process on one device: they share launches, in a stream of the group's. */
typedef struct program_group {
    struct program_group *next; /* among those of the process */
    int users;
    pthread_mutex_t lock;
    atomic_bool dead;
    CUstream stream;
    _Atomic uint32_t *done; /* pinned: the latest run that is over */
    CUdeviceptr done_there; /* where the GPU sees it               */
    uint32_t launched;
    int count;
    accelerator_seat *seats[DEVICE_LAUNCH_RANKS];
    pending_launch *first, **end;
} program_group;

/** Where another rank's memory lies here. */
typedef struct seat_peer {
    CUdeviceptr memory;
    int lanes;
    bool opened; /* by IPC */
} seat_peer;

struct accelerator_seat {
    const cuda_device *of;
    int rank, ranks, lanes;
    CUdeviceptr memory;
    seat_words *words;
    CUdeviceptr words_there; /* where the GPU sees them */
    seat_peer *peers;        /* [ranks] */
    program_group *group;
    uint32_t number;    /* runs asked for        */
    CUstream last;      /* where the latest is   */
    bool met, captured; /* others may write here; graphs may run here */
};

/** A program in memory of the GPU. */
typedef struct kept_program {
    accelerator_seat *seat;
    CUdeviceptr memory;
    device_call call; /* but for the buffers, and the deadline */
    int32_t lanes;
    ring_dtype dtype;
    bool captured;
} kept_program;

/** A device's kernels that run programs, by type; loaded when first asked for. */
struct cuda_programs {
    pthread_mutex_t lock;
    CUmodule module;
    CUfunction of[RING_DTYPE_COUNT];
    int blocks; /* of theirs that run at once, 0: not loaded */
};

/** @param[out] of  the kernel of a type. @param[out] blocks  that run at once. */
ring_status program_kernel(const cuda_device *c, CUfunction *of, ring_dtype dtype, int *blocks);

/** Of the device whose context is entered. */
ring_status program_group_new(program_group **out);
/** The group at that address, with one more user; NULL: it is gone. */
program_group *program_group_join(uint64_t address, accelerator_seat *s);
void program_group_drop(program_group *g);
ring_status cuda_run_start(accelerator_seat *s, const accelerator_run *run, bool captured,
                           uint32_t *number);
ring_status cuda_run_state(const accelerator_seat *s, uint32_t number, accelerator_verdict *out,
                           bool *waits);
/** Soon after an abort. @return false: a stream has not come to its latest run in 2 seconds. */
bool cuda_run_await_end(const accelerator_seat *s);
void cuda_run_abort(accelerator_seat *s);
void cuda_run_release(accelerator_seat *s);

#endif

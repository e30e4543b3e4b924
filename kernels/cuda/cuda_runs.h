/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_runs: starts and tracks runs of programs on a GPU. A rank that has the GPU to itself
 * launches its runs; ranks of a process that share the GPU form a group and share the launches.
 */
#ifndef RING_CUDA_RUNS_H
#define RING_CUDA_RUNS_H

#include "accelerator_programs.h"
#include "cuda_arenas.h"

enum { SEAT_LANES_MOST = 64 };

/** Runs with lists of blocks that may be enqueued at once; a further one waits for the first. */
enum { LISTED_RUNS = 256 };
/** Runs by which a rank may be ahead of others that share its launches. Once in PARKS_ONCE_IN runs
 *  ranks park even if all are in time, because the words by which they do must not fall back too
 * far: numbers wrap. */
enum { AHEAD_MOST = 128, PARKS_ONCE_IN = 1 << 30 };

/** The words of a seat in pinned memory. `arrived` and `passed` are numbers of runs. The kernel
 *  writes `passed` at its end, or the rank's stream, if the stream waits for the run by words. */
typedef struct seat_words {
    _Atomic uint64_t abort;
    _Atomic uint32_t arrived; /* the latest run that the rank's stream has reached */
    _Atomic uint32_t passed;  /* the latest run that has ended                     */
    device_verdict verdicts[SEAT_LANES_MOST];
} seat_words;

/** The words of a group in pinned memory. */
typedef struct group_words {
    _Atomic uint64_t release; /* 1: failed runs let their streams continue */
    _Atomic uint32_t done;    /* the latest run of the group's stream that is complete */
} group_words;

/** A run of a group that has not been launched. */
typedef struct pending_launch {
    struct pending_launch *next;
    uint32_t number;
    int announced;       /* ranks that have announced it */
    int parking, parked; /* those of them that will wait by words, and whose streams do so */
    CUfunction function;
    program_args args;
} pending_launch;

/** The seats of one process on one device. They share launches, in the stream of the last rank that
 *  makes the call, or, if ranks have parked, in that of the group. */
typedef struct program_group {
    struct program_group *next; /* in the list of the process */
    int users;
    pthread_mutex_t lock;
    atomic_bool dead;
    CUstream stream;    /* if there are several seats */
    CUevent launch_end; /* of the latest run that was launched in a rank's stream */
    cuda_arena *arena;  /* of one seat */
    size_t pinned;      /* its unit that has the words */
    group_words *words;
    CUdeviceptr done_there, release_there;
    _Atomic uint32_t launched; /* the latest run that was launched */
    _Atomic uint32_t parked;   /* the latest run for which a rank waits by words */
    int count;
    struct {
        int rank;
        _Atomic uint32_t number;    /* of the latest run that it has announced */
    } members[DEVICE_LAUNCH_RANKS]; /* by the order of seats; they outlive these */
    accelerator_seat *seats[DEVICE_LAUNCH_RANKS];
    pending_launch *first, **end;
} program_group;

/** Another rank's seat, as its memory is mapped here. */
typedef struct seat_peer {
    CUdeviceptr memory;
    accelerator_shape shape;
    bool far; /* on another host, so the memory is not mapped */
} seat_peer;

struct accelerator_seat {
    const cuda_device *of;
    int rank, ranks;
    accelerator_shape shape;
    cuda_arena *arena;
    size_t first;               /* unit of the arena */
    CUdeviceptr memory, shared; /* its parts of the arena's */
    struct {
        char *at; /* NULL: all ranks are on this host */
        CUdeviceptr there;
    } far[2];      /* its parts of both halves of the room: what ranks of other hosts send, and what
                      they receive */
    size_t pinned; /* unit of the arena's pinned memory, which has the words */
    seat_words *words;
    CUdeviceptr words_there; /* their address for the GPU */
    seat_peer *peers;        /* [ranks] */
    device_call call;        /* without a program, buffers and the timeout */
    program_group *group;
    struct {
        CUstream stream;
        uint64_t id;    /* identifies the stream */
    } own;              /* for runs without a stream */
    CUevent mark;       /* the default stream's work or the rank's arrival, for which a run waits */
    CUevent place;      /* in a stream that a run of pairs waits for, or the end of that run */
    CUstream announced; /* the stream of the latest run while that is not settled; else NULL */
    struct kept_pairs *pairs; /* see cuda_pairs.c                                     */
    struct {
        uint64_t *bases; /* pinned, [LISTED_RUNS][2][ranks], see device_call    */
        CUdeviceptr there;
        size_t first, count; /* their units of the arena's pinned memory        */
    } lists;
    uint32_t number;    /* of the latest run                               */
    uint64_t last;      /* identifies the stream of the latest run         */
    size_t apart_bytes; /* of the links, if some ranks are in other processes */
    uint32_t window;    /* of the boxes, on which the ranks agreed */
    int admitted;       /* blocks of the device that are set aside for it */
    bool derived;       /* the arena was allocated with another seat       */
    bool connected;     /* the other ranks may write to this rank's memory */
    bool captured;      /* graphs may run programs of this seat           */
};

/** A program in the memory of its seat. */
typedef struct kept_program {
    accelerator_seat *seat;
    size_t first, count; /* its units of the arena's pinned memory */
    device_call call;    /* without the buffers and the timeout */
    int32_t lanes;
    ring_dtype dtype;
    bool captured;
} kept_program;

/** A device's kernels that run programs, by type. They are loaded at their first use. */
struct cuda_programs {
    pthread_mutex_t lock;
    CUmodule module;
    CUfunction of[RING_DTYPE_COUNT], pairs, chores;
    int blocks;    /* that can run at once; 0 while the kernels are not loaded */
    int admitted;  /* of all seats */
    int processes; /* that are known to share the device */
};

/** @param[out] of  the kernel of a type. @param[out] blocks  of it that can run at once. */
ring_status program_kernel(const cuda_device *c, CUfunction *of, ring_dtype dtype, int *blocks);

/** Sets aside blocks of the device for the calls of a seat, at most @p most, for all of which there
 *  is room beside those of all other seats. @return their number, which may be 0. */
int program_admit(const cuda_device *c, int most);
/** Gives back @p blocks of them. @param processes  the number that share the device, which lowers
 *  what later seats get. */
void program_dismiss(const cuda_device *c, int blocks, int processes);

/** Creates a group with one user, which uses the arena of that seat's. */
ring_status program_group_new(cuda_arena *a, program_group **out);
/** Adds a seat, and with it a user, to the group at an address of this process.
 *  @param[out] out  the group; NULL if it no longer exists. */
ring_status program_group_join(uint64_t address, accelerator_seat *s, program_group **out);
void program_group_drop(program_group *g);
/** Creates the seat's stream and events in the context that the thread has entered, and takes
 *  pinned memory for its lists. */
ring_status cuda_run_open(accelerator_seat *s);
void cuda_run_close(const accelerator_seat *s);
ring_status cuda_run_start(accelerator_seat *s, const accelerator_run *run, bool captured,
                           uint32_t *number);
ring_status cuda_run_settle(accelerator_seat *s, uint32_t number, double until);
/** Starts a run of pairs, of a seat that has its GPU to itself. */
ring_status cuda_pairs_start(accelerator_seat *s, const accelerator_pairs *pairs, bool captured,
                             uint32_t *number);
/** Gives back the pinned memory of the pairs of runs that have ended, and forgets the others. */
void cuda_pairs_close(accelerator_seat *s);
ring_status cuda_run_state(const accelerator_seat *s, uint32_t number, accelerator_verdict *out,
                           int *missing);
/** Waits up to 2 seconds for the seat's latest run, which ends soon after an abort.
 *  @return false if a stream has not passed that run. */
bool cuda_run_await_end(const accelerator_seat *s);
/** @return the timeout of a run, in nanoseconds. */
uint64_t cuda_run_nanoseconds(double timeout);
/** Lets a run with @p holds hold @p stream if it fails. @param call  of the run. */
void cuda_run_hold(const accelerator_seat *s, bool holds, CUstream stream, device_call *call);
/** Launches a kernel of @p blocks blocks for the seat alone, in the order of its runs. The caller
 *  holds the group's lock. @param call  in @p args; it gets the run's number. */
ring_status cuda_run_launch(accelerator_seat *s, CUfunction function, uint32_t blocks, void *args,
                            device_call *call, CUstream stream, bool captured);
/** @return true if the run with that number has passed. */
bool cuda_run_has_passed(const accelerator_seat *s, uint32_t number);
/** Makes a stream wait for the work that another one has now. @param mark  is recorded there. */
ring_status cuda_run_follow(CUstream stream, CUstream of, CUevent mark);
/** Makes a stream wait for the work that the default stream has now. */
ring_status cuda_run_follow_default(const accelerator_seat *s, CUstream stream);
void cuda_run_abort(accelerator_seat *s);
/** Ends the runs that hold their streams because they have failed, and lets later ones hold none.
 */
void cuda_run_let_go(accelerator_seat *s);
void cuda_run_release(accelerator_seat *s);

#endif

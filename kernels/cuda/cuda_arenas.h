/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_arenas: manages the memory of one rank for all communicators of a membership, on its GPU and
 * pinned. An arena is allocated, and opened by the other ranks, once: with the communicator from
 * which the others are derived. Their seats are parts of it, so making and destroying them neither
 * allocates memory nor waits for streams: a small kernel clears words, writes links and tells other
 * ranks that this one has departed from their memory.
 */
#ifndef RING_CUDA_ARENAS_H
#define RING_CUDA_ARENAS_H

#include "cuda_rooms.h"
#include "program_args.h"

#include <pthread.h>

/* An arena is used in units. Programs take a few KiB of pinned memory each. */
enum {
    ARENA_UNIT_BYTES = 16 << 10,
    ARENA_UNITS_MOST = 1 << 10,
    PINNED_UNIT_BYTES = 1 << 10,
    PINNED_UNITS = 4 << 10
};

/** A part from which not all of its ranks have departed, although this one has. */
typedef struct left_part {
    struct left_part *next;
    size_t first, count; /* its units                                      */
    CUdeviceptr departed;
    int ranks; /* each has a word at `departed`, which is not 0 once it has departed */
} left_part;

/** Another rank's arena, as it is mapped here. */
typedef struct arena_peer {
    CUdeviceptr memory; /* to which this rank's GPU writes; 0: it does not reach it */
    bool opened;        /* by IPC */
    bool far;           /* on another host */
    cuda_room room;     /* if the memory is a room */
} arena_peer;

typedef struct cuda_arena {
    const cuda_device *of;
    pthread_mutex_t lock;       /* guards what follows, except what is constant */
    int users;                  /* seats and groups */
    int rank, ranks;            /* of the membership */
    CUdeviceptr memory, shared; /* of the GPU; what the other ranks write to: the same, or a room
                                   with the same offsets */
    size_t bytes;
    bool far; /* ranks of the membership are on several hosts. The room then has a second half, with
                 the same offsets, for what this rank sends to other hosts */
    int room; /* descriptor of the room */
    bool used[ARENA_UNITS_MOST];
    char *pinned;
    CUdeviceptr pinned_there; /* its address for the GPU */
    bool pinned_used[PINNED_UNITS];
    arena_peer *peers; /* [ranks]; their memory is constant after the start */
    bool connected;    /* the other ranks may access this memory            */
    left_part *left;
    CUfunction chores;       /* the kernel */
    uint32_t launched;       /* number of the latest launch of it */
    struct cuda_arena *next; /* in the list of those that are kept, or freed late */
    bool kept;
} cuda_arena;

/** Allocates an arena with one user, with room for a part of @p bytes and for some small ones. The
 *  thread has entered the device's context in all of these functions.
 *  @param chores  the kernel of chores.h. @param rank  of the membership. @param far  as in
 *  cuda_arena. */
ring_status arena_new(const cuda_device *c, CUfunction chores, int rank, int ranks, size_t bytes,
                      bool far, cuda_arena **out);
void arena_hold(cuda_arena *a);
/** The last user gives the memory back. It is freed after all ranks have departed from it, by the
 *  next arena_new() if communicators may keep streams stopped, because that waits for streams. */
void arena_drop(cuda_arena *a);
/** As accelerator_programs.count_holders(). */
void arena_count_holders(const accelerator *a, int change);
/** Keeps the arena until the process ends, for a user that may go on using it and never drops it.
 */
void arena_keep(cuda_arena *a);
/** Checks that this GPU reads and writes the memory of all others, and that their writes arrive
 *  here. All ranks call it at the same time, when they have opened the others' memory. */
ring_status arena_greet(cuda_arena *a);
/** Waits up to 10 seconds until the peers have released all messages of these links. Until then
 * they write receipts to this memory, which the end of this process would free. */
void arena_drain(cuda_arena *a, CUdeviceptr links, size_t bytes);
/** Opens this rank's room, for ranks on other hosts. */
ring_status arena_open_own_room(cuda_arena *a, const accelerator_card *cards);
/** Opens the rooms of all ranks of the host instead of the memory of their GPUs.
 *  @param cards  [ranks]. */
ring_status arena_open_rooms(cuda_arena *a, const accelerator_card *cards);
/** Closes the other ranks' memory. None of them may access this rank's memory any more. */
void arena_close_peers(cuda_arena *a);

/** @param[out] first  the part's first unit. @return RING_ERR_MEMORY: the arena is full. */
ring_status arena_take(cuda_arena *a, size_t bytes, size_t *first);
/** Gives back a part to which no other rank writes any more. */
void arena_give(cuda_arena *a, size_t first, size_t bytes);
/** Gives back a part when all of its ranks have departed from it. Their words are at
 *  @p departed. */
void arena_leave(cuda_arena *a, size_t first, size_t bytes, CUdeviceptr departed, int ranks);
static inline CUdeviceptr arena_at(const cuda_arena *a, size_t first)
{
    return a->memory + first * ARENA_UNIT_BYTES;
}

/** @return the units of pinned memory that hold so many bytes. */
static inline size_t pinned_units(size_t bytes)
{
    return (bytes + PINNED_UNIT_BYTES - 1) / PINNED_UNIT_BYTES;
}
/** Takes consecutive units of pinned memory. @return the first; PINNED_UNITS: there are none. */
size_t arena_pin(cuda_arena *a, size_t count);
void arena_unpin(cuda_arena *a, size_t first, size_t count);
static inline void *pinned_at(const cuda_arena *a, size_t first)
{
    return a->pinned + first * PINNED_UNIT_BYTES;
}
static inline CUdeviceptr pinned_there(const cuda_arena *a, size_t first)
{
    return a->pinned_there + first * PINNED_UNIT_BYTES;
}

/** Runs chores on the GPU and waits for them, for some seconds at most. */
ring_status arena_work(cuda_arena *a, chore_args *chores);
void arena_add_chore(chore_args *to, uint64_t kind, CUdeviceptr at, CUdeviceptr from, size_t bytes);

#endif

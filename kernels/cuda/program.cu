/* SPDX-License-Identifier: Apache-2.0
 * program_i8, program_u8, …: run whole calls of the ranks that share a launch, by blocks that wait
 * for each other. There is one kernel for each type of elements. program_pairs runs sends and
 * receives. program_chores prepares the memory of both.
 * Host reference: the engine (libring/core). Launch: cooperative, with a block of DEVICE_THREADS
 * threads for each lane of each rank; all blocks must be resident at once. */
#include "chores.h"
#include "program_pairs.h"
#include "program_run.h"

#define ROW(type) \
    KERNEL_BOUND(program_##type, program_args, DEVICE_THREADS, 1) \
    { \
        SHARED lane_pass pass; \
        SHARED device_16 room[DEVICE_PROGRAM_BYTES / sizeof(device_16)]; \
        const uint32_t rank = block_index() / args.lanes, lane = block_index() % args.lanes; \
        run_lane<fold_of_##type>(&pass, room, &args.calls[rank], lane, args.lanes); \
    }
CUDA_FOLD_TYPES(ROW)
#undef ROW

/* A block for each lane. */
KERNEL_BOUND(program_pairs, pairs_args, DEVICE_THREADS, 1)
{
    SHARED pairs_run run;
    run_pairs(&run, &args, block_index());
}

/* Launch: one block of CHORE_THREADS threads. */
KERNEL_BOUND(program_chores, chore_args, CHORE_THREADS, 1)
{
    do_chores(&args);
}

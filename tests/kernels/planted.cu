/* SPDX-License-Identifier: Apache-2.0
 * planted: kernels with mistakes that GPUs bear in silence, most of the time; and the same without.
 */
#include "device.h"
#include "planted.h"

/* Turns the words of a block round, by way of its own memory. */
DEVICE void turn_round(const planted_args &args, bool waits)
{
    SHARED uint32_t kept[PLANTED_THREADS];
    const unsigned t = thread_index(), first = block_index() * PLANTED_THREADS;
    kept[t] = args.words[first + t];
    if (waits)
        block_barrier();
    args.words[first + t] = kept[PLANTED_THREADS - 1 - t];
}

KERNEL(planted_turn, planted_args)
{
    turn_round(args, true);
}

KERNEL(planted_no_barrier, planted_args)
{
    turn_round(args, false);
}

KERNEL(planted_race_of_blocks, planted_args)
{
    if (thread_index() == 0)
        args.words[0] += 1;
}

KERNEL(planted_race_of_threads, planted_args)
{
    args.words[block_index()] += 1;
}

KERNEL(planted_out_of_bounds, planted_args)
{
    args.words[block_index() * thread_count() + thread_index() + 1] = 1;
}

KERNEL(planted_divergence, planted_args)
{
    if (thread_index() == 7)
        return;
    block_barrier();
    args.words[thread_index()] = 1;
}

KERNEL(planted_trap, planted_args)
{
    if (thread_index() == 7 && block_index() == 0)
        device_trap();
    block_barrier();
    args.words[block_index()] = 1;
}

KERNEL(planted_misalignment, planted_args)
{
    const device_16 zeros = {};
    store_16(args.words + 1, zeros);
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep: divides arrays of the same number of elements among many threads. Where the arrays are
 * aligned so that a group of N elements is one access, the threads take groups; before and after
 * those, and elsewhere, they take single elements.
 *
 * A kernel that only streams over arrays is launched with a block for each tile (by_tiles), and
 * each of its threads takes one group and ends: on an H100 that is 5 % faster than blocks that stay
 * and loop. A block that has other work before and after (a lane of a program) takes whole arrays
 * (by_block), in a loop, with several groups in flight in each thread.
 *
 * A body is a struct with
 *     template <unsigned N, unsigned W> DEVICE void at(const Args &, uint64_t i, uint64_t stride)
 * which processes W groups of N elements that begin at the elements i, i + stride, …. Every element
 * is processed once and by one thread, so a result may overwrite its operands.
 */
#ifndef RING_CUDA_SWEEP_H
#define RING_CUDA_SWEEP_H

#include "device.h"

/** Elements [begin, end), which @p workers threads share; this thread is number @p worker. */
struct sweep_share {
    uint64_t begin, end, worker, workers;
};

/** All threads of the block share the elements. */
DEVICE sweep_share share_of_block(uint64_t begin, uint64_t end)
{
    return sweep_share{begin, end, thread_index(), thread_count()};
}

/** @return the number of elements of @p size bytes from @p at to the next multiple of @p unit. */
DEVICE uint64_t lead_to(const void *at, unsigned size, unsigned unit)
{
    return (0 - (uint64_t)at) % unit / size;
}

/** @return true if the address of an element is a multiple of @p unit. */
DEVICE bool lies_at(const void *at, uint64_t element, unsigned size, unsigned unit)
{
    return ((uint64_t)at + element * size) % unit == 0;
}

/** Takes groups [0, groups), which begin at element @p first, W at a time in each thread, as long
 * as all threads have W of them. @return the number of groups done. */
template <class Body, unsigned N, unsigned W, class Args>
DEVICE uint64_t sweep_rounds(const Args &args, const sweep_share &s, uint64_t first,
                             uint64_t groups)
{
    const uint64_t whole = W == 1 ? groups : groups - groups % (W * s.workers);
    NO_UNROLL
    for (uint64_t g = s.worker; g < whole; g += W * s.workers)
        Body::template at<N, W>(args, first + g * N, s.workers * N);
    return whole;
}

/** Takes the single elements [s.begin, head) and [tail, s.end). */
template <class Body, class Args>
DEVICE void sweep_rest(const Args &args, const sweep_share &s, uint64_t head, uint64_t tail)
{
    const uint64_t before = head - s.begin, all = before + (s.end - tail);
    NO_UNROLL
    for (uint64_t i = s.worker; i < all; i += s.workers)
        Body::template at<1, 1>(args, i < before ? s.begin + i : tail + (i - before), 0);
}

/** Takes the whole share by groups: first W at a time, then one at a time, then the single elements
 *  at both ends. @param lead  elements before the first group. */
template <class Body, unsigned N, unsigned W, class Args>
DEVICE void sweep_groups(const Args &args, const sweep_share &s, uint64_t lead)
{
    const uint64_t head = lead < s.end - s.begin ? s.begin + lead : s.end;
    const uint64_t groups = (s.end - head) / N;
    const uint64_t done = sweep_rounds<Body, N, W>(args, s, head, groups);
    NO_UNROLL
    for (uint64_t g = done + s.worker; W > 1 && g < groups; g += s.workers)
        Body::template at<N, 1>(args, head + g * N, 0);
    sweep_rest<Body>(args, s, head, head + groups * N);
}

/** Takes the whole share by single elements. */
template <class Body, unsigned W, class Args>
DEVICE void sweep_elements(const Args &args, const sweep_share &s)
{
    const uint64_t done = sweep_rounds<Body, 1, W>(args, s, s.begin, s.end - s.begin);
    sweep_rest<Body>(args, s, s.begin, s.begin + done);
}

/** All threads of the block take arrays of @p count elements. */
struct by_block {
    /** By groups of N elements, W at a time. @param lead  elements before the first group. */
    template <class Body, unsigned N, unsigned W, class Args>
    DEVICE void groups(const Args &args, uint64_t count, uint64_t lead)
    {
        sweep_groups<Body, N, W>(args, share_of_block(0, count), lead);
    }

    /** By single elements, at most W at a time. */
    template <class Body, unsigned N, unsigned W, class Args>
    DEVICE void elements(const Args &args, uint64_t count)
    {
        sweep_elements<Body, W>(args, share_of_block(0, count));
    }
};

/** All threads of the grid take arrays of @p count elements. The grid has cuda_tiles(count, N)
 *  blocks or more. */
struct by_tiles {
    /** Each thread takes one group of N elements; the threads after those take a single element at
     *  one of the ends. */
    template <class Body, unsigned N, unsigned, class Args>
    DEVICE void groups(const Args &args, uint64_t count, uint64_t lead)
    {
        const uint64_t head = lead < count ? lead : count, groups = (count - head) / N;
        const uint64_t worker = (uint64_t)block_index() * thread_count() + thread_index();
        if (worker < groups) {
            Body::template at<N, 1>(args, head + worker * N, 0);
            return;
        }
        const uint64_t one = worker - groups, i = one < head ? one : one + groups * N;
        if (i < count)
            Body::template at<1, 1>(args, i, 0);
    }

    /** Each block takes N elements for each thread, at most W at a time. */
    template <class Body, unsigned N, unsigned W, class Args>
    DEVICE void elements(const Args &args, uint64_t count)
    {
        const uint64_t tile = (uint64_t)N * thread_count(), begin = block_index() * tile;
        if (begin < count)
            sweep_elements<Body, (N < W ? N : W)>(args, share_of_block(begin, count - begin < tile
                                                                                  ? count
                                                                                  : begin + tile));
    }
};

#endif

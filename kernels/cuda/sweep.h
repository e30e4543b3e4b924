/* SPDX-License-Identifier: Apache-2.0
 *
 * sweep: arrays of as many elements each, walked by many threads: groups of N elements where all
 * arrays lie so that a group is one access, single elements before, behind and elsewhere.
 *
 * A body is a struct with
 *     template <unsigned N, unsigned W> DEVICE void at(const Args &, uint64_t i, uint64_t stride)
 * which does N elements from each of i, i + stride, … on, W groups in all. Every element is done
 * once, by one thread, so that a result may lie where its operands lay.
 */
#ifndef RING_CUDA_SWEEP_H
#define RING_CUDA_SWEEP_H

#include "device.h"

/** Elements [begin, end), of threads of which this is number @p worker. */
struct sweep_share {
    uint64_t begin, end, worker, workers;
};

/** Of all threads of the grid. */
DEVICE sweep_share share_of_grid(uint64_t begin, uint64_t end)
{
    const uint64_t block = thread_count();
    return sweep_share{begin, end, block_index() * block + thread_index(), block_count() * block};
}

/** Of all threads of the block. */
DEVICE sweep_share share_of_block(uint64_t begin, uint64_t end)
{
    return sweep_share{begin, end, thread_index(), thread_count()};
}

/** @return elements of @p size from @p at to the next one at a multiple of @p unit. */
DEVICE uint64_t lead_to(const void *at, unsigned size, unsigned unit)
{
    return (0 - (uint64_t)at) % unit / size;
}

/** @return true if an element lies at a multiple of @p unit. */
DEVICE bool lies_at(const void *at, uint64_t element, unsigned size, unsigned unit)
{
    return ((uint64_t)at + element * size) % unit == 0;
}

/** Groups [0, groups) from element @p first on, W at a time. @return groups done: the rest is less
 *  than W of each thread. */
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

/** Single elements: [s.begin, head) and [tail, s.end). */
template <class Body, class Args>
DEVICE void sweep_rest(const Args &args, const sweep_share &s, uint64_t head, uint64_t tail)
{
    const uint64_t before = head - s.begin, all = before + (s.end - tail);
    NO_UNROLL
    for (uint64_t i = s.worker; i < all; i += s.workers)
        Body::template at<1, 1>(args, i < before ? s.begin + i : tail + (i - before), 0);
}

/** All of the share by groups. @param lead  elements before the first group. */
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

/** All of the share by single elements. */
template <class Body, unsigned W, class Args>
DEVICE void sweep_elements(const Args &args, const sweep_share &s)
{
    const uint64_t done = sweep_rounds<Body, 1, W>(args, s, s.begin, s.end - s.begin);
    sweep_rest<Body>(args, s, s.begin, s.begin + done);
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * copy_range: copies bytes with all threads of a block, by the widest accesses that the alignment
 * of source and destination allows.
 */
#ifndef RING_CUDA_COPY_RANGE_H
#define RING_CUDA_COPY_RANGE_H

#include "sweep.h"

#include <type_traits>

enum { COPY_WIDTH = 4 /* accesses in flight per thread */ };

struct copy_ends {
    char *to;
    const char *from;
};

DEVICE void copy_load(device_16 *x, const char *from)
{
    *x = load_16(from);
}

DEVICE void copy_store(char *to, device_16 x)
{
    store_16(to, x);
}

template <class Unit> DEVICE void copy_load(Unit *x, const char *from)
{
    *x = *assume_global((const Unit *)from);
}

template <class Unit> DEVICE void copy_store(char *to, Unit x)
{
    *assume_global((Unit *)to) = x;
}

/* The elements of this sweep are bytes. A group of N bytes is one Unit; N = 1 is a single byte. */
template <class Unit> struct copy_body {
    template <unsigned N, unsigned W>
    DEVICE void at(const copy_ends &ends, uint64_t i, uint64_t stride)
    {
        typedef std::conditional_t<N == 1, uint8_t, Unit> unit;
        unit x[W];
        UNROLL
        for (unsigned w = 0; w < W; w++)
            copy_load(&x[w], ends.from + i + w * stride);
        UNROLL
        for (unsigned w = 0; w < W; w++)
            copy_store(ends.to + i + w * stride, x[w]);
    }
};

template <class Unit> DEVICE void copy_by(const copy_ends &ends, uint64_t bytes)
{
    enum : unsigned { SIZE = sizeof(Unit) };
    sweep_groups<copy_body<Unit>, SIZE, COPY_WIDTH>(ends, share_of_block(0, bytes),
                                                    lead_to(ends.to, 1, SIZE));
}

/** Copies to (bytes) = from (bytes). All threads of the block call it; the ranges must not overlap.
 *  The two addresses can be aligned together to a unit that divides their difference. */
DEVICE void copy_range(char *to, const char *from, uint64_t bytes)
{
    const copy_ends ends = {to, from};
    const uint64_t apart = (uint64_t)to ^ (uint64_t)from;
    if (apart % 16 == 0)
        copy_by<device_16>(ends, bytes);
    else if (apart % 4 == 0)
        copy_by<uint32_t>(ends, bytes);
    else if (apart % 2 == 0)
        copy_by<uint16_t>(ends, bytes);
    else
        sweep_elements<copy_body<uint8_t>, COPY_WIDTH>(ends, share_of_block(0, bytes));
}

#endif

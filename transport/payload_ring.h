/* SPDX-License-Identifier: Apache-2.0
 *
 * payload_ring: computes where payloads are stored in a ring buffer that both ends of a link have.
 * Payloads follow each other, each at the start of a cache line, so both ends derive a payload's
 * place from the bytes before it, counted from 0, and never transmit it. Every place has room for a
 * whole segment; the end of the buffer may therefore stay unused.
 */
#ifndef RING_PAYLOAD_RING_H
#define RING_PAYLOAD_RING_H

#include "transport.h"

/** @return where a payload starts whose predecessors end at @p bytes; the place in the buffer is
 *  the result modulo @p size. */
static inline uint64_t payload_place(uint64_t bytes, uint64_t size)
{
    const uint64_t at = bytes % size;
    return size - at < TRANSPORT_SEGMENT ? bytes + (size - at) : bytes;
}

/** @return where a payload of @p bytes ends. An empty one occupies no space. */
static inline uint64_t payload_end(uint64_t before, size_t bytes, uint64_t size)
{
    const uint64_t lines = (bytes + RING_CACHE_LINE - 1) / RING_CACHE_LINE;
    return bytes > 0 ? payload_place(before, size) + lines * RING_CACHE_LINE : before;
}

#endif

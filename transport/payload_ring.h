/* SPDX-License-Identifier: Apache-2.0
 *
 * payload_ring: computes where payloads are stored in a ring buffer that both ends of a link have.
 * Payloads follow each other, each at the start of a cache line. Both ends count the bytes of all
 * earlier payloads from 0 and derive the next place from that position, so places are never
 * transmitted. Every place has room for a whole segment, so the end of the buffer may stay unused.
 */
#ifndef RING_PAYLOAD_RING_H
#define RING_PAYLOAD_RING_H

#include "transport.h"

/** @return the position at which the next payload starts if all earlier ones end at position
 *  @p bytes. Positions count bytes from 0; the offset in the buffer is the position modulo
 *  @p size. */
static inline uint64_t payload_place(uint64_t bytes, uint64_t size)
{
    const uint64_t at = bytes % size;
    return size - at < TRANSPORT_SEGMENT ? bytes + (size - at) : bytes;
}

/** @return the position at which a payload of @p bytes ends if all earlier ones end at position
 *  @p before. An empty payload occupies no space. */
static inline uint64_t payload_end(uint64_t before, size_t bytes, uint64_t size)
{
    const uint64_t lines = (bytes + RING_CACHE_LINE - 1) / RING_CACHE_LINE;
    return bytes > 0 ? payload_place(before, size) + lines * RING_CACHE_LINE : before;
}

#endif

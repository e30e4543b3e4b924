/* SPDX-License-Identifier: Apache-2.0
 *
 * payload_ring: a buffer that both ends of a link have alike, where payloads come to lie behind
 * each other, each at a whole line. Both know where from the bytes that went before, counted from
 * 0. At each place a whole segment finds room, so the rest at the end of the buffer may stay
 * unused.
 */
#ifndef RING_PAYLOAD_RING_H
#define RING_PAYLOAD_RING_H

#include "transport.h"

/** Where the payload lies whose predecessors end at @p bytes, still to be taken modulo @p size. */
static inline uint64_t payload_place(uint64_t bytes, uint64_t size)
{
    const uint64_t at = bytes % size;
    return size - at < TRANSPORT_SEGMENT ? bytes + (size - at) : bytes;
}

/** Where one of @p bytes ends. One without any takes no place. */
static inline uint64_t payload_end(uint64_t before, size_t bytes, uint64_t size)
{
    const uint64_t lines = (bytes + RING_CACHE_LINE - 1) / RING_CACHE_LINE;
    return bytes > 0 ? payload_place(before, size) + lines * RING_CACHE_LINE : before;
}

#endif

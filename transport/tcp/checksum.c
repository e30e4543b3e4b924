/* SPDX-License-Identifier: Apache-2.0
 * Computes the checksums of frames with XXH3. They detect corruption by faulty adapters, drivers or
 * proxies, including errors that TCP's own 16-bit checksum misses. They do not protect against
 * deliberate changes. */
#include "tcp.h"

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h> /* selects the processor's best instructions at run time */
#else
#include <xxhash.h>
#endif

uint64_t tcp_payload_sum(const void *payload, size_t bytes)
{
    return XXH3_64bits(payload, bytes);
}

uint32_t tcp_stamp(const transport_frame *frame, uint64_t number, bool checksum)
{
    const size_t stamp = sizeof frame->stamp;
    if (!checksum)
        return (uint32_t)number;
    return (uint32_t)XXH3_64bits_withSeed((const char *)frame + stamp, sizeof *frame - stamp,
                                          number);
}

void tcp_seal(transport_frame *frame, uint64_t number, const void *payload, bool checksum)
{
    const size_t bytes = transport_behind(frame);
    if (checksum && bytes > 0)
        frame->ext.src_ref = tcp_payload_sum(payload, bytes);
    frame->stamp = tcp_stamp(frame, number, checksum);
}

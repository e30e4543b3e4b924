/* SPDX-License-Identifier: Apache-2.0
 *
 * signature: the facts of a call that all ranks must agree on. 64 bits of it travel in every frame,
 * so different calls are detected at the first message.
 */
#ifndef RING_CORE_SIGNATURE_H
#define RING_CORE_SIGNATURE_H

#include "plan.h"
#include "transport.h"

typedef struct call_signature {
    plan_collective collective;
    ring_dtype dtype;
    ring_op op;
    int32_t root;            /* of send and recv: the other rank; of v-forms whose counts all ranks
                                know: a checksum of the counts */
    size_t count;            /* of v-forms: the longest block; 0 where only two ranks know it */
    const plan_shape *shape; /* v-forms: as this rank gave it; not compared between ranks */
    uint64_t digest;         /* of the shape */
    bool tagged;             /* send and recv that meet by tag */
    int32_t tag;             /* of those; programs do not depend on it */
    bool on_device;          /* accelerators run it; not part of the signature */
} call_signature;

/** How a call is carried out. Ranks must agree on it as on the call itself. */
typedef struct call_way {
    int algorithm; /* its number in the table, 0 for send and recv */
    int chunks;
} call_way;

/** Packs a call. Exact for calls that fit into one frame; of longer messages, frames carry count
 *  and root beside it, of v-forms the elements of the message. A send and the recv that it meets
 *  have the same. */
uint64_t signature_pack(const call_signature *call, const call_way *way);

/** The call that a peer's frame belongs to, as far as the frame shows it. */
call_signature signature_of_frame(const transport_frame *frame);
/** The call that was packed, as far as 64 bits hold it. */
call_signature signature_unpack(uint64_t packed);

/** Bytes of the whole vector of a call among so many ranks. */
size_t signature_bytes(const call_signature *call, int ranks);

/** Text of a call for messages: "all_reduce #3 (count 5, float32, sum)". */
void signature_describe(const call_signature *call, uint64_t seq, char *out, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * signature: holds the facts of a call on which all ranks must agree. Every frame carries them,
 * packed into 64 bits, so ranks that make different calls are detected at the first message.
 */
#ifndef RING_CORE_SIGNATURE_H
#define RING_CORE_SIGNATURE_H

#include "plan.h"
#include "transport.h"

typedef struct call_signature {
    plan_collective collective;
    ring_dtype dtype;
    ring_op op;
    int32_t root;            /* in a send or recv: the other rank. In v-forms whose counts all ranks
                                know: a checksum of the counts */
    size_t count;            /* in v-forms: elements of the longest block, or 0 if only two ranks
                                know each count */
    const plan_shape *shape; /* v-forms: this rank's shape; not compared between ranks */
    uint64_t digest;         /* hash of the shape */
    bool tagged;             /* a send or recv that is matched by tag */
    int32_t tag;             /* its tag; programs do not depend on it */
    bool on_device;          /* accelerators run the call, so the buffers of all ranks are theirs */
} call_signature;

/** The tuner's choice for a call. Ranks must agree on it as they do on the call itself. */
typedef struct call_way {
    int algorithm; /* its number in the table of algorithms; 0 for send and recv */
    int chunks;
} call_way;

/** Packs a call into 64 bits. The packed count is exact for messages that fit into one short frame.
 *  The frames of longer messages also carry the full count and root; in v-forms, this count is that
 *  of the message. A send and the matching recv have the same packed signature. */
uint64_t signature_pack(const call_signature *call, const call_way *way);

/** @return the packed signature of a v-form, marked as that of a rank without bytes. Such a rank
 *  does not know the kind of memory of the others, and exchanges nothing with them. */
uint64_t signature_of_idle(uint64_t packed);
/** @return true if two ranks made the same call, as far as 64 bits describe it. */
bool signature_same(uint64_t a, uint64_t b);

/** @return the call to which a peer's frame belongs, as far as the frame describes it. */
call_signature signature_of_frame(const transport_frame *frame);
/** @return the call that was packed, as far as 64 bits describe it. */
call_signature signature_unpack(uint64_t packed);

/** @return the bytes of a call's whole vector in a communicator of @p ranks ranks. */
size_t signature_bytes(const call_signature *call, int ranks);

/** Describes a call for errors: "all_reduce #3 (count 5, float32, sum)".
 *  @param size  bytes of @p out, at least 1. */
void signature_describe(const call_signature *call, uint64_t seq, char *out, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * program: a plan bound to a call's counts: a flat list of ops with byte offsets, message numbers
 * and channels. Buffers are bound when a work starts, so the same call with any buffers is
 * lowered once; a communicator keeps the programs that it used last.
 *
 * Slices. A plan that relays round a circle, or whose partial sums are more than a communicator's
 * scratch memory, is run slice after slice. A slice is the same range of elements of every chunk,
 * so ops name whole chunks and the present slice selects from them.
 *
 * Channels. A long call is cut into slices for several channels a peer, which run them side by
 * side: slice s goes over channel s mod `channels`. Each channel has its own order of messages.
 */
#ifndef RING_CORE_PROGRAM_H
#define RING_CORE_PROGRAM_H

#include "channel.h"
#include "program_ops.h"

typedef struct program {
    struct program *next, **link; /* in its bucket */
    struct program *older, *newer;
    call_signature call;
    plan_shape shape; /* v-forms: the call's, in `room` */
    size_t *room;
    const plan_facts *facts;
    struct shared_plan *from; /* see shared_plan.h */
    uint64_t signature;
    const char *algorithm;
    size_t src_bytes, dst_bytes; /* of this rank's buffers                        */
    size_t block;                /* bytes from the vector's start to this rank's block */
    size_t longest;              /* elements of the longest block that this rank knows */
    bool src_here, dst_here;     /* this rank has the buffer (for dst: gives it) */
    bool to_self;                /* send, recv: the other rank is this one        */
    int32_t users;               /* works that run it */
    _Atomic int kept;            /* calls of groups, and prepared ones, that will use it */
    int32_t op_count, peer_count, slices, channels;
    size_t slice;   /* elements of each chunk in a slice */
    size_t segment; /* elements of a carried frame       */
    size_t scratch; /* bytes of partial sums             */
    size_t memory;  /* bytes of all this, without the plan */
    program_op *ops;
    operand *operands;
    program_peer *peers; /* [peer_count] */
    channel **on;        /* [channels][peer_count] */
    void *device;        /* the accelerator's program; NULL: the engine runs `ops` */
    const accelerator *device_of;
} program;

/** The channel of an index to a peer. */
static inline channel *program_channel(const program *p, int32_t index, int32_t peer)
{
    return p->on[(ptrdiff_t)index * p->peer_count + peer];
}

/** Checks a call, finds its plan and lowers it. @param kept  programs that it may share a plan
 *  with, by `older`. @return RING_ERR_ARGUMENT for a call with wrong arguments, before anything was
 *  built; other errors for one that cannot be lowered. */
ring_status program_new(ring_comm *comm, const program *kept, const call_signature *call,
                        program **out);
void program_free(program *p);

/** The slices that go over a channel. */
static inline int32_t program_runs(const program *p, int32_t index)
{
    return p->channels == 1 ? p->slices : (p->slices - index + p->channels - 1) / p->channels;
}

/** Elements of the op before a slice. In program_count(): its elements in the slice. */
static inline size_t program_skip(const program *p, const program_op *o, int32_t slice)
{
    const size_t skip = (size_t)slice * p->slice;
    return skip < o->count ? skip : o->count;
}

static inline size_t program_count(const program *p, const program_op *o, int32_t slice)
{
    const size_t left = o->count - program_skip(p, o, slice);
    return left < p->slice ? left : p->slice;
}

#endif

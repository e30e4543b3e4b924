/* SPDX-License-Identifier: Apache-2.0
 *
 * program: binds a plan to a call's counts, as a flat list of ops with byte offsets, message
 * numbers and channels. Buffers are bound only when a work starts, so repeated calls with any
 * buffers are lowered once; a communicator keeps the programs that it used last.
 *
 * Slices: a plan that relays around a circle of ranks, or whose partial sums exceed a
 * communicator's scratch memory, is run slice by slice. A slice is the same range of elements of
 * every chunk: ops name whole chunks, and the current slice selects elements of them.
 *
 * Channels: a long call is cut into slices for several channels per peer, which run concurrently;
 * slice s uses channel s mod `channels`. Each channel numbers its own messages.
 */
#ifndef RING_CORE_PROGRAM_H
#define RING_CORE_PROGRAM_H

#include "channel.h"
#include "program_ops.h"

typedef struct program {
    struct program *next, **link;  /* in its bucket of the cache's hash table */
    struct program *older, *newer; /* in the cache's list in the order of use */
    call_signature call;
    plan_shape shape; /* v-forms: the call's shape, stored in `room` */
    size_t *room;     /* memory for `shape` */
    const plan_facts *facts;
    struct shared_plan *from; /* the plan that was lowered */
    uint64_t signature;
    const char *algorithm;
    size_t src_bytes, dst_bytes; /* sizes of this rank's buffers */
    size_t block;                /* bytes from the vector's start to this rank's block */
    size_t longest;              /* elements of the longest block that this rank knows */
    bool src_here, dst_here;     /* true if the call has this buffer on this rank */
    bool to_self;                /* a send or recv whose peer is this rank itself */
    int32_t users;               /* works that run the program */
    _Atomic int kept;            /* prepared calls and calls of groups that will use it */
    int32_t op_count, peer_count, slices, channels;
    size_t slice;   /* elements of each chunk in a slice */
    size_t segment; /* elements of a carried frame */
    size_t scratch; /* bytes of partial sums */
    size_t memory;  /* bytes of the program, without its plan */
    program_op *ops;
    operand *operands;
    program_peer *peers;          /* [peer_count] */
    channel **on;                 /* [channels][peer_count] */
    void *device;                 /* the accelerator's program; NULL: the engine runs `ops` */
    const accelerator *device_of; /* the accelerator of `device` */
} program;

/** @return the channel @p index to a peer. */
static inline channel *program_channel(const program *p, int32_t index, int32_t peer)
{
    return p->on[(ptrdiff_t)index * p->peer_count + peer];
}

/** Checks a call, finds or builds its plan, and lowers it. @param kept  programs, linked by
 *  `older`, whose plans it may share. @return RING_ERR_ARGUMENT if an argument is wrong, before
 *  anything was built; other errors if the call cannot be lowered. */
ring_status program_new(ring_comm *comm, const program *kept, const call_signature *call,
                        program **out);
/** Frees a program, and drops its plan. */
void program_free(program *p);

/** @return the number of slices that use channel @p index. */
static inline int32_t program_runs(const program *p, int32_t index)
{
    return p->channels == 1 ? p->slices : (p->slices - index + p->channels - 1) / p->channels;
}

/** @return the number of elements of an op that belong to the slices before @p slice. */
static inline size_t program_skip(const program *p, const program_op *o, int32_t slice)
{
    const size_t skip = (size_t)slice * p->slice;
    return skip < o->count ? skip : o->count;
}

/** @return the number of elements of an op that belong to @p slice. */
static inline size_t program_count(const program *p, const program_op *o, int32_t slice)
{
    const size_t left = o->count - program_skip(p, o, slice);
    return left < p->slice ? left : p->slice;
}

#endif

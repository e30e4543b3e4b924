/* SPDX-License-Identifier: Apache-2.0
 *
 * lowering: turns a plan into the ops of a program for given counts, and cuts long calls into
 * slices and channels.
 */
#ifndef RING_CORE_LOWERING_H
#define RING_CORE_LOWERING_H

#include "algo.h"
#include "program.h"

/** Facts about links that lowering needs. They are the same on all ranks. */
typedef struct lowering_limits {
    size_t segment;     /* the most bytes of a carried frame */
    bool few_frames;    /* carry a message in two frames if they are not longer than a segment */
    size_t window;      /* the frames that a link can hold in flight */
    size_t eager;       /* the bytes that a call may send to a peer without waiting for it */
    size_t outstanding; /* the bytes that a slice may send to a peer; SIZE_MAX: no limit */
    size_t scratch;     /* the most bytes of partial sums */
    int32_t channels;   /* the most channels of a call */
    size_t per_channel; /* a call gets one channel for this many bytes of its longest chunk */
    bool skips_empty;   /* ranks exchange no messages for empty blocks of v-forms in which only two
                           ranks know a count */
} lowering_limits;

/** Lowers the plan @p of to the program @p p, whose call, facts and shape are already set. The
 *  caller then fills in the channels (program.on). @param a  the algorithm of the plan; NULL for a
 *  send or recv. @return RING_OK or RING_ERR_MEMORY; in both cases the caller frees the program. */
ring_status program_lower(const lowering_limits *limits, const plan *of, const algo *a, program *p);

#endif

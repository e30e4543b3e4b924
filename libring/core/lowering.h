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
    size_t segment;     /* most bytes of a carried frame */
    bool few_frames;    /* cut carried messages in two, if the frames are not longer than segment */
    size_t window;      /* frames that a link can hold in flight */
    size_t eager;       /* bytes that a call may send to a peer without waiting for it */
    size_t outstanding; /* bytes that a slice may send to a peer; SIZE_MAX: no limit */
    size_t scratch;     /* bytes of partial sums */
    int32_t channels;   /* the most channels */
    size_t per_channel; /* bytes of a chunk that are worth one more channel */
} lowering_limits;

/** Fills in @p p except its channels (program.on); its call, facts and shape are already set.
 *  @param a  the algorithm of the plan; NULL: send or recv.
 *  @return RING_OK or RING_ERR_MEMORY; free it with program_free() in both cases. */
ring_status program_lower(const lowering_limits *limits, const plan *of, const algo *a, program *p);

#endif

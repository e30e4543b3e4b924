/* SPDX-License-Identifier: Apache-2.0
 *
 * lowering: a plan becomes the ops of a program, for given counts.
 */
#ifndef RING_CORE_LOWERING_H
#define RING_CORE_LOWERING_H

#include "algo.h"
#include "program.h"

/** Facts of links that lowering needs. The same on every rank. */
typedef struct lowering_limits {
    size_t segment;     /* bytes of a carried frame                                         */
    bool few_frames;    /* a carried message is cut in two, unless its frames are longer */
    size_t window;      /* frames that a link takes ahead                                   */
    size_t eager;       /* bytes that a call may send a peer ahead                          */
    size_t outstanding; /* bytes that a slice may send a peer; SIZE_MAX: any                */
    size_t scratch;     /* bytes of partial sums                                            */
    int32_t channels;   /* at most                                                          */
    size_t per_channel; /* bytes of a chunk that are worth a channel of their own           */
} lowering_limits;

/** Fills in @p p, whose call, facts and shape are set, but for its channels (program.on).
 *  @param a  whose plan it is; NULL: of a pair.
 *  @return RING_OK or RING_ERR_MEMORY; program_free() frees it either way. */
ring_status program_lower(const lowering_limits *limits, const plan *of, const algo *a, program *p);

#endif

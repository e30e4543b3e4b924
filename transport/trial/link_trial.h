/* SPDX-License-Identifier: Apache-2.0
 *
 * link_trial: how fast a link is whose two ends are in this process, for transports that reach
 * memory. All that arrives is compared.
 */
#ifndef RING_LINK_TRIAL_H
#define RING_LINK_TRIAL_H

#include "base.h"

struct transport;
struct transport_ib;

typedef struct link_trial {
    double median_us, slow_us; /* 8 bytes there and back: the median, and one of a hundred */
    double bytes_per_second;   /* of puts of 1 MiB */
} link_trial;

/** Takes some 0.3 s, at most a few seconds. @param ib  borrowed: the port of both ends.
 *  @return RING_OK, or why the link does not work. */
ring_status link_try(const struct transport *t, const struct transport_ib *ib, link_trial *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * link_trial: tests and times a link whose two ends are both in this process, for ringinfo. Works
 * with transports that have put(); all received bytes are compared with the sent ones.
 */
#ifndef RING_LINK_TRIAL_H
#define RING_LINK_TRIAL_H

#include "base.h"

struct transport;
struct transport_ib;

typedef struct link_trial {
    double median_us, slow_us; /* round trip of 8 bytes: median, and 99th percentile */
    double bytes_per_second;   /* of puts of 1 MiB */
} link_trial;

/** Runs for about 0.3 s, at most a few seconds. @param ib  borrowed; the port that both ends use.
 *  @return RING_OK, or the status of the failure that fail() described. */
ring_status link_try(const struct transport *t, const struct transport_ib *ib, link_trial *out);

#endif

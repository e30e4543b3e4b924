/* SPDX-License-Identifier: Apache-2.0
 *
 * link_trial: tests and times a link whose two ends are both in this process, for ringinfo. It
 * works with transports that have put(), and compares all received bytes with the sent ones.
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

/** Opens a link of transport @p t and measures it. Usually takes 0.3 s, at most a few seconds.
 *  @param ib   settings of the adapter and port that both ends use; borrowed.
 *  @param out  valid if the result is RING_OK. */
ring_status link_try(const struct transport *t, const struct transport_ib *ib, link_trial *out);

#endif

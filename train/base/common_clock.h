/* SPDX-License-Identifier: Apache-2.0
 * common_clock: gives ranks a common zero for train_now(), so that the actions of all ranks can be
 * shown on one time line. */
#ifndef TRAIN_COMMON_CLOCK_H
#define TRAIN_COMMON_CLOCK_H

#include <ring/ring.h>

/** Collective. If the ranks are on several hosts, their clocks are aligned by the time at which
 * they leave a barrier, which differs slightly between ranks.
 *  @param[out] zero  the common point in time, as this rank's train_now(). */
ring_status common_clock_zero(ring_comm *comm, double *zero);

#endif

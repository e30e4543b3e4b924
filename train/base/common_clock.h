/* SPDX-License-Identifier: Apache-2.0
 * common_clock: gives ranks a common zero of train_now(), so that what each did can be shown on one
 * time line. */
#ifndef TRAIN_COMMON_CLOCK_H
#define TRAIN_COMMON_CLOCK_H

#include <ring/ring.h>

/** Collective. On one host all ranks read the same clock. Clocks of several hosts are aligned by
 * the moment when ranks leave a barrier, which is not quite the same on each.
 *  @param[out] zero  the same moment by this rank's train_now(). */
ring_status common_clock_zero(ring_comm *comm, double *zero);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * common_clock: a zero of train_now() that ranks share, to show side by side what each did. */
#ifndef TRAIN_COMMON_CLOCK_H
#define TRAIN_COMMON_CLOCK_H

#include <ring/ring.h>

/** Collective. On one host ranks read the same clock. Those of several hosts are aligned where
 *  their ranks leave a barrier, which they do not at quite the same time.
 *  @param[out] zero  the same moment by this rank's train_now(). */
ring_status common_clock_zero(ring_comm *comm, double *zero);

#endif

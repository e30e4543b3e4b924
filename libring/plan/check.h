/* SPDX-License-Identifier: Apache-2.0
 * The parts of the checker, in the order in which they run. */
#ifndef RING_PLAN_CHECK_H
#define RING_PLAN_CHECK_H

#include "run.h"

/** Plans of one collective, each well-formed by itself: whatever passes can be run. */
ring_status check_shape(const plan *const *plans, int ranks);

/** Memory is not used too early or too late, in all schedules. @p done was run to its end. */
ring_status check_race(const run *done);

#endif

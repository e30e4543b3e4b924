/* SPDX-License-Identifier: Apache-2.0
 * The parts of the checker, in the order in which they run. */
#ifndef RING_PLAN_CHECKER_H
#define RING_PLAN_CHECKER_H

#include "simulator.h"

/** Slices that are proven in a row: a first, one between others, a last. */
enum { CHECK_SLICES = 3 };

/** Plans of one collective, each well-formed by itself: a plan that passes can be run. */
ring_status check_shape(const plan *const *plans, int ranks);

/** All ranks come to their ends on links that are soon full. (On links with room the simulator has
 *  shown it.) @param slices  of which the plans consist. */
ring_status check_links(const plan *const *plans, int ranks, int slices);

/** @return one rank's plan run @p slices times in a row, as one plan whose ranges are cut into
 *  their chunks; NULL if out of memory. */
plan *check_slices(const plan *p, int slices);

/** Memory is not used too early or too late, in all schedules. @p done was run to its end. */
ring_status check_race(const simulation *done);

#endif

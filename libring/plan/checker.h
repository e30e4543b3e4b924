/* SPDX-License-Identifier: Apache-2.0
 * checker: declares the parts of the checker, in the order in which plan_check() runs them. */
#ifndef RING_PLAN_CHECKER_H
#define RING_PLAN_CHECKER_H

#include "simulator.h"

/** The slices that are proven in a row: a first one, one in the middle, and a last one. */
enum { CHECK_SLICES = 3 };

/** Checks that all plans are of one call and that each is well-formed, so that it can be run. */
ring_status check_shape(const plan *const *plans, int ranks);

/** Checks that all ranks complete their plans on links with little room. (The simulator assumes
 *  links with unlimited room.) @param slices  the number of slices that the plans consist of. */
ring_status check_links(const plan *const *plans, int ranks, int slices);

/** @return a plan that runs one rank's plan @p slices times in a row, and whose ranges are cut into
 *  single chunks; NULL if out of memory. */
plan *check_slices(const plan *p, int slices);

/** Checks that memory is not used too early or too late in any schedule. @param done  a simulation
 *  that has run to its end. */
ring_status check_race(const simulation *done);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * simulator_steps: one step on symbols. */
#ifndef RING_PLAN_SIMULATOR_STEPS_H
#define RING_PLAN_SIMULATOR_STEPS_H

#include "simulation.h"

/** Executes a step that need not wait. */
ring_status sim_execute(simulation *s, int rank, const plan_step *step);

#endif

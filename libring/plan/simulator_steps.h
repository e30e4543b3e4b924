/* SPDX-License-Identifier: Apache-2.0
 * simulator_steps: executes one step of a plan on symbols, for the simulator. */
#ifndef RING_PLAN_SIMULATOR_STEPS_H
#define RING_PLAN_SIMULATOR_STEPS_H

#include "simulation.h"

/** Executes the next step of a rank, whose messages have arrived. */
ring_status sim_execute(simulation *s, int rank, const plan_step *step);

#endif

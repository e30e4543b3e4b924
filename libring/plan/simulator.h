/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator: executes all ranks' plans on symbols instead of bytes. The checker examines the
 * results and the order of events, the printer draws them, and plan_order() reads one chunk.
 *
 * One schedule is executed, and it represents all of them. Ranks wait only for specific messages,
 * so results cannot depend on speed, unless memory is used too early or too late, which
 * check_race() excludes. A WAIT passes when its messages have been taken. If they are carried by
 * value it may pass earlier, which only lets more ranks continue.
 */
#ifndef RING_PLAN_SIMULATOR_H
#define RING_PLAN_SIMULATOR_H

#include "simulation.h"

/** Runs all plans to their ends. Fails on the first step that is wrong or waits for ever, and on a
 *  message that no rank takes. */
ring_status sim_to_end(simulation *s);
/** Runs one round, in the mode by_rounds. @param[out] moved  false if no rank could take a
 *  message. */
ring_status sim_round(simulation *s, bool *moved);
/** Fails if a rank still waits, or if a message has not been taken. */
ring_status sim_finish(const simulation *s);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * simulator: all ranks' plans executed on symbols instead of bytes. The checker judges the results
 * and the order of events; the printer draws them; plan_order() reads one chunk.
 *
 * One schedule is run. It stands for all: ranks only wait for named messages, so results cannot
 * depend on speed, unless memory is used too early or too late, which check_race() excludes. A WAIT
 * passes when the messages were taken: by value it may pass earlier, which can only let more ranks
 * go on.
 */
#ifndef RING_PLAN_SIMULATOR_H
#define RING_PLAN_SIMULATOR_H

#include "simulation.h"

/** Runs all plans to their ends; fails on the first step that is wrong or waits for ever, and on
 *  messages that are not taken. */
ring_status sim_to_end(simulation *s);
/** With by_rounds: one round. @param[out] moved  false if no rank could take a message. */
ring_status sim_round(simulation *s, bool *moved);
/** Fails if a rank still waits or a message was not taken. */
ring_status sim_finish(const simulation *s);

#endif

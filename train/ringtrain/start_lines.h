/* SPDX-License-Identifier: Apache-2.0
 *
 * start_lines: what rank 0 prints of a run before its first update.
 */
#ifndef TRAIN_START_LINES_H
#define TRAIN_START_LINES_H

#include "train_state.h"

/** Collective; prints nothing on other ranks. @return RING_OK, RING_ERR_MEMORY, or what ends a
 *  communicator. */
ring_status start_lines_print(const train_state *state);

#endif

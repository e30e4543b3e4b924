/* SPDX-License-Identifier: Apache-2.0
 *
 * start_lines: what rank 0 prints of a run before its first update.
 */
#ifndef TRAIN_START_LINES_H
#define TRAIN_START_LINES_H

#include "train_state.h"

/** Prints nothing on other ranks. */
void start_lines_print(const train_state *state);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * start_lines: lets rank 0 print the settings and sizes of a run before its first update.
 */
#ifndef TRAIN_START_LINES_H
#define TRAIN_START_LINES_H

#include "train_state.h"

/** Collective; other ranks print nothing. @return RING_OK, RING_ERR_MEMORY, or an error that ends
 *  the communicator. */
ring_status start_lines_print(const train_state *state);

#endif

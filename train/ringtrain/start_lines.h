/* SPDX-License-Identifier: Apache-2.0
 *
 * start_lines: prints the settings and sizes of a run on rank 0 before the first update.
 */
#ifndef TRAIN_START_LINES_H
#define TRAIN_START_LINES_H

#include "train_state.h"

/** Collective, but only rank 0 prints. @return RING_OK, RING_ERR_MEMORY, or an error that ends
 *  the communicator. */
ring_status start_lines_print(const train_state *state);

#endif

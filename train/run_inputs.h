/* SPDX-License-Identifier: Apache-2.0
 *
 * run_inputs: what a run is made from: configuration, network, data, and each rank's part of them.
 * Each step needs those before it; none talks to other ranks.
 */
#ifndef TRAIN_RUN_INPUTS_H
#define TRAIN_RUN_INPUTS_H

#include "train_state.h"

/** Fills config and grid. */
ring_status inputs_read_config(train_state *state);
/** Fills spec. */
ring_status inputs_read_model(train_state *state);
/** Fills train, test and, if the options leave it open, loss. */
ring_status inputs_read_data(train_state *state);
/** Fills shares, sampler and epochs. */
ring_status inputs_divide(train_state *state);

#endif

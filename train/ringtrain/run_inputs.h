/* SPDX-License-Identifier: Apache-2.0
 *
 * run_inputs: what a run is made from: configuration, network, data, and each rank's part of them.
 * Each step needs those before it; only inputs_read_data() and inputs_compare() talk to
 * other ranks.
 */
#ifndef TRAIN_RUN_INPUTS_H
#define TRAIN_RUN_INPUTS_H

#include "train_state.h"

/** Fills config and grid. */
ring_status inputs_read_config(train_state *state);
/** Fills spec. */
ring_status inputs_read_model(train_state *state);
/** Fills train and test; collective, but with --check. */
ring_status inputs_read_data(train_state *state);
/** Fills shares and sampler. */
ring_status inputs_divide(train_state *state);
/** Collective: fails on all ranks, with the first setting that differs, unless they share all. */
ring_status inputs_compare(train_state *state);

/** Counts the whole run's epochs and updates from where the trainer is, which may have come there
 *  with another number of ranks, and fills in values that are "auto" and follow from them. */
void inputs_count(train_state *state);

#endif

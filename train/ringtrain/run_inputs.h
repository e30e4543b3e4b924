/* SPDX-License-Identifier: Apache-2.0
 *
 * run_inputs: reads the inputs of a run (configuration, network, data) and divides them among the
 * ranks. Each function needs the results of those above it; only inputs_read_data() and
 * inputs_compare() communicate with other ranks.
 */
#ifndef TRAIN_RUN_INPUTS_H
#define TRAIN_RUN_INPUTS_H

#include "train_state.h"

/** Fills config and grid. */
ring_status inputs_read_config(train_state *state);
/** Fills spec. */
ring_status inputs_read_model(train_state *state);
/** Fills train and test. Collective, except with --check. */
ring_status inputs_read_data(train_state *state);
/** Fills shares and sampler. */
ring_status inputs_divide(train_state *state);
/** Collective: fails on all ranks if a setting differs between them, and names the first one. */
ring_status inputs_compare(train_state *state);

/** Counts the epochs and updates of the whole run from the trainer's place in it, which it may have
 *  reached with another number of ranks. Then fills in the values that are "auto" and depend on
 *  these counts. */
void inputs_count(train_state *state);

#endif

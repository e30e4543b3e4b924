/* SPDX-License-Identifier: Apache-2.0
 *
 * run_inputs: reads the inputs of a run (configuration, network and data) and divides the data
 * among the ranks. Call the functions in the order of their declaration. Only inputs_read_data()
 * and inputs_compare() communicate with other ranks.
 */
#ifndef TRAIN_RUN_INPUTS_H
#define TRAIN_RUN_INPUTS_H

#include "train_state.h"

/** Fills in config and grid of the trainer. */
ring_status inputs_read_config(train_state *state);
/** Fills in spec, the description of the network. */
ring_status inputs_read_model(train_state *state);
/** Fills in the data sets train and test. Collective, except with --check. */
ring_status inputs_read_data(train_state *state);
/** Fills in shares and sampler: divides the samples of an epoch into each rank's micro-batches and
 *  updates. The last micro-batch and the last update may be short. */
ring_status inputs_divide(train_state *state);
/** Collective: if settings differ between ranks, fails on all ranks and names the first such
 *  setting. */
ring_status inputs_compare(train_state *state);

/** Counts the epochs and updates of the whole run: those already done, possibly with a different
 * number of ranks, and those that remain. Then fills in the values that
 * are "auto" and depend on these counts. */
void inputs_count(train_state *state);

#endif

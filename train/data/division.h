/* SPDX-License-Identifier: Apache-2.0
 *
 * division: decides from the configuration how many samples each rank takes in each update.
 */
#ifndef TRAIN_DIVISION_H
#define TRAIN_DIVISION_H

#include <stdio.h>

#include "config.h"
#include "sampler.h"

/** Divides the training set among the ranks.
 *  @param config   with resolved batch sizes
 *  @param samples  number of samples in the data set
 *  @param[out] shares, sampler  free them whatever the result.
 *  @return RING_OK, RING_ERR_MEMORY, or RING_ERR_CONFIG: the configuration asks for more samples
 * than there are, or there are too few samples for an update. */
ring_status division_make(const train_config *config, size_t samples, int ranks, int rank,
                          uint64_t seed, data_shares *shares, train_sampler *sampler);

/** Prints each rank's samples in an epoch, unless all ranks have the same number. */
void division_print(const train_config *config, const data_shares *shares, size_t samples,
                    FILE *out);

#endif

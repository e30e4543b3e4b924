/* SPDX-License-Identifier: Apache-2.0
 *
 * division: decides how many samples each rank takes in each update, from the configuration.
 */
#ifndef TRAIN_DIVISION_H
#define TRAIN_DIVISION_H

#include <stdio.h>

#include "config.h"
#include "sampler.h"

/** @param config   with resolved batch sizes
 *  @param samples  of the data set
 *  @param[out] shares, sampler  free them whatever the result.
 *  @return RING_OK, RING_ERR_CONFIG (more samples than there are, fewer than an update takes, or
 *  none), RING_ERR_MEMORY. */
ring_status division_make(const train_config *config, size_t samples, int ranks, int rank,
                          uint64_t seed, data_shares *shares, train_sampler *sampler);

/** Prints each rank's samples of an epoch, unless all ranks take equally many. */
void division_print(const train_config *config, const data_shares *shares, size_t samples,
                    FILE *out);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * model_data: checks the data sets of a folder against the network that will be trained on them.
 */
#ifndef TRAIN_MODEL_DATA_H
#define TRAIN_MODEL_DATA_H

#include "dataset.h"
#include "loss.h"
#include "model_spec.h"

/** Divides texts into samples of the size that the network @p spec takes, and checks that the
 * samples of both data sets fit the network.
 *  @param[in,out] loss  LOSS_KINDS is replaced by the usual loss for the kind of data
 *  @return RING_OK, or RING_ERR_CONFIG: the data do not fit the network. */
ring_status model_data_fit(const char *folder, const model_spec *spec, loss_kind *loss,
                           train_dataset *train, train_dataset *test);

#endif

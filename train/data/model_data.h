/* SPDX-License-Identifier: Apache-2.0
 *
 * model_data: the data sets of a folder, checked against the network that is to take them.
 */
#ifndef TRAIN_MODEL_DATA_H
#define TRAIN_MODEL_DATA_H

#include "dataset.h"
#include "loss.h"
#include "model_spec.h"

/** Makes training and test samples, as they were read, those of the network @p spec.
 *  @param[in,out] loss  LOSS_KINDS: becomes what suits the data
 *  @return RING_OK, or RING_ERR_CONFIG: they are of another kind than the network takes. */
ring_status model_data_fit(const char *folder, const model_spec *spec, loss_kind *loss,
                           train_dataset *train, train_dataset *test);

#endif

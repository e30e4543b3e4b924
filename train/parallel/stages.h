/* SPDX-License-Identifier: Apache-2.0
 *
 * stages: decides where a network is cut into the stages of a pipeline, so that the largest stage
 * has as little weight as possible. The functions are pure, so all ranks decide the same.
 */
#ifndef TRAIN_STAGES_H
#define TRAIN_STAGES_H

#include "model.h"

/** Cuts a row of weights into @p stages contiguous parts, none of them empty. It minimizes the sum
 * of the largest part; among such cuts it maximizes the sum of the smallest part; among these it
 * cuts as late as possible.
 *  @param weights  [count] whole numbers, 0 or more; count >= stages >= 1
 *  @param[out] starts  [stages + 1] index of the first weight of each part, and count
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status stages_balance(const double *weights, int count, int stages, int *starts);

/** Cuts a network between nodes where only one activation is passed on (model_may_cut()).
 *  @param model   after model_plan(); it needs no memory
 *  @param method  the weight of a layer: "parameters" (or "best"): its parameters; "uniform": 1;
 *                 "type:REGEX": 1 for types that match the extended regular expression, in upper or
 *                 lower case, else 0
 *  @param[out] starts  [stages + 1] first node of each stage, and node_count
 *  @return RING_OK; RING_ERR_MEMORY; RING_ERR_CONFIG: the network cannot be cut in this way. */
ring_status stages_cut(const train_model *model, const char *method, int stages, int *starts);

/** @return the stage of @p node. @param starts  of stages_cut() */
int stages_of(const int *starts, int node);

/** @return number of parameters of nodes @p first to @p end - 1. Tied parameters count at the node
 *  that has the original. */
size_t stages_parameters(const train_model *model, int first, int end);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * stages: decides by pure functions where a network is cut into the stages of a pipeline.
 */
#ifndef TRAIN_STAGES_H
#define TRAIN_STAGES_H

#include "model.h"

/** Cuts a row of weights into @p stages neighbouring parts, none empty: the largest sum is as small
 *  as it can be, then the smallest one as large, then the cuts lie as late as they can.
 *  @param weights  [count], count >= stages >= 1; whole numbers, none negative
 *  @param[out] starts  [stages + 1] the first weight of each part, and count
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status stages_balance(const double *weights, int count, int stages, int *starts);

/** Cuts a network between its nodes, where one activation alone goes on (model_may_cut()).
 *  @param model   planned is enough
 *  @param method  what each stage should have equally much of: "parameters" (or "best"), "uniform"
 *                 (layers), or "type:REGEX" (layers of these types, as in egrep, case apart)
 *  @param[out] starts  [stages + 1] the first node of each stage, and node_count
 *  @return RING_OK, RING_ERR_MEMORY, or RING_ERR_CONFIG, which says what to change. */
ring_status stages_cut(const train_model *model, const char *method, int stages, int *starts);

/** @return the stage of @p node. */
int stages_of(const int *starts, int node);

/** @return parameters of nodes @p first to below @p end; those of tied ones count with the first.
 */
size_t stages_parameters(const train_model *model, int first, int end);

#endif

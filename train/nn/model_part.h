/* SPDX-License-Identifier: Apache-2.0
 *
 * model_part: makes a network of its own from consecutive nodes of a network, for a rank that holds
 * only these. A network may be cut between two nodes if only one activation crosses the cut: the
 * output of the node before it.
 */
#ifndef TRAIN_MODEL_PART_H
#define TRAIN_MODEL_PART_H

#include "model.h"

/** @return true if @p model may be cut before @p node, which is not the first. */
bool model_may_cut(const train_model *model, int node);

/** Makes the network of nodes @p first to below @p end of @p spec, which may be cut at both places.
 *  After a cut, node 0 is a received one (op.h), and node n is node first + n - 1 of the whole.
 *  Names of nodes and masks of dropout stay the same. Parameters that are shared with an earlier
 *  part become a copy.
 *  @param model  planned from @p spec. Free @p part with model_spec_free() whatever the result.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status model_part_spec(model_spec *part, const model_spec *spec, const train_model *model,
                            int first, int end);

/** @return the number in the part, which begins at @p first, of @p node of the whole network. */
int model_part_node(int first, int node);

#endif

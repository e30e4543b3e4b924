/* SPDX-License-Identifier: Apache-2.0
 *
 * model_part: makes consecutive nodes of a network into a network of its own, for a rank that holds
 * only these nodes. A network may be cut between two nodes if only one activation crosses the cut:
 * the output of the node before it.
 */
#ifndef TRAIN_MODEL_PART_H
#define TRAIN_MODEL_PART_H

#include "model.h"

/** @return whether @p model may be cut before @p node. @param node  not the first one */
bool model_may_cut(const train_model *model, int node);

/** Makes the network of nodes @p first to @p end - 1 of @p spec, which may be cut at both places.
 * If
 *  @p first is above 0, node 0 of the part is "received" (op.h), and node n is node first + n - 1
 * of the whole network. Names of nodes and masks of dropout stay the same. Parameters that are tied
 * to an earlier part become a copy.
 *  @param model  planned from @p spec
 *  @return RING_OK or RING_ERR_MEMORY. Free @p part with model_spec_free() whatever the result. */
ring_status model_part_spec(model_spec *part, const model_spec *spec, const train_model *model,
                            int first, int end);

/** @return number of node @p node of the whole network in the part that begins at @p first. */
int model_part_node(int first, int node);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * model_part: neighbouring nodes of a network as a network of their own, for a rank that holds no
 * more than these. A network may be cut between two nodes if one activation alone goes on from
 * there: the output of the node before the cut.
 */
#ifndef TRAIN_MODEL_PART_H
#define TRAIN_MODEL_PART_H

#include "model.h"

/** @return true if @p model may be cut before @p node, which is not the first. */
bool model_may_cut(const train_model *model, int node);

/** Makes the network of nodes @p first to below @p end of @p spec, both places where it may be cut.
 *  Behind a cut its node 0 is a received one (op.h), and node n is node first + n - 1. Names of
 *  nodes, and what dropout draws, stay as they were. Parameters that are shared with an earlier
 *  part are a copy here.
 *  @param model  planned from @p spec. Free @p part with model_spec_free() whatever the result.
 *  @return RING_OK or RING_ERR_MEMORY. */
ring_status model_part_spec(model_spec *part, const model_spec *spec, const train_model *model,
                            int first, int end);

/** @return the node of the part that is @p node of the whole, from @p first on. */
int model_part_node(int first, int node);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_split: splits a network with wide layers into one network for each tensor rank (Shoeybi et
 * al., Megatron-LM, 2019). Two linear layers form a pair if everything between them works on each
 * feature alone, or is attention. A rank has some outputs of the first layer, the matching inputs
 * of the second one, and some heads of the attention; all other layers are complete on every rank.
 * Activations are therefore summed over the ranks twice per pair: forward after the second layer,
 * at a node "summed", and backward before the first one, at a node "copied" (op.h).
 */
#ifndef TRAIN_TENSOR_SPLIT_H
#define TRAIN_TENSOR_SPLIT_H

#include "model.h"
#include "tensor_order.h"

/** A rank's share of a node. */
typedef enum tensor_cut {
    CUT_NONE,    /* all of it */
    CUT_OUTPUTS, /* neighbouring outputs of a linear layer */
    CUT_THIRDS,  /* of queries, keys and values alike */
    CUT_BETWEEN, /* of an op without parameters what belongs to these */
    CUT_INPUTS   /* and of the second linear layer their inputs, and the bias as a whole */
} tensor_cut;

/** Finds pairs of layers for @p ranks ranks, from the first layer to the last. Layers that share
 *  parameters with others stay whole.
 *  @param model  planned from @p spec. @param[out] cuts  [spec->count]
 *  @return RING_OK, or RING_ERR_CONFIG, which says what there is no such number of, or that there
 *  is no pair. */
ring_status tensor_split_find(tensor_cut *cuts, const model_spec *spec, const train_model *model,
                              int ranks);

/** Makes the network of rank @p rank. Its tensors have the names that they have in the whole.
 *  Free @p own with model_spec_free() whatever the result. @return RING_OK or RING_ERR_MEMORY. */
ring_status tensor_split_spec(model_spec *own, const model_spec *spec, const train_model *model,
                              const tensor_cut *cuts, int ranks, int rank);

/** @param number  of the tensor in its node. @param count  its elements
 *  @return what ranks have of it; tensor_order_whole(): all have all of it. */
tensor_order tensor_split_order(tensor_cut cut, const op_use *use, int number, size_t count,
                                int ranks);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_split: splits a network with wide layers into one network for each tensor rank (Shoeybi et
 * al., Megatron-LM, 2019). Two linear layers form a pair if all layers between them are elementwise
 * or attention. A rank has some outputs of the first layer, the matching inputs of the second
 * layer, and some heads of the attention; every rank has all other layers in full. So two sums over
 * the ranks are needed for each pair: of activations after the second layer in forward, at a node
 * "summed", and of gradients before the first layer in backward, at a node "copied" (op.h).
 */
#ifndef TRAIN_TENSOR_SPLIT_H
#define TRAIN_TENSOR_SPLIT_H

#include "model.h"
#include "tensor_order.h"

/** How the tensor ranks divide a node. */
typedef enum tensor_cut {
    CUT_NONE,    /* not divided: each rank computes the whole node */
    CUT_OUTPUTS, /* first linear layer of a pair: each rank has adjacent outputs */
    CUT_THIRDS,  /* first linear layer before attention: each rank has adjacent outputs in each of
                    the three thirds, which are queries, keys and values */
    CUT_BETWEEN, /* node between the two layers: each rank has the features of its outputs */
    CUT_INPUTS   /* second linear layer: each rank has the inputs of these features, and the whole
                    bias */
} tensor_cut;

/** Finds pairs of layers to be divided among @p ranks ranks, from the first layer to the last.
 * Layers with tied parameters are not divided.
 *  @param model  planned from @p spec. @param[out] cuts  [spec->count]
 *  @return RING_OK; RING_ERR_CONFIG: there is no pair, or @p ranks does not divide the heads or
 *  features of a pair. */
ring_status tensor_split_find(tensor_cut *cuts, const model_spec *spec, const train_model *model,
                              int ranks);

/** Writes the network of rank @p rank. Its tensors have the same names as in the whole network.
 *  @return RING_OK or RING_ERR_MEMORY. Free @p own with model_spec_free() whatever the result. */
ring_status tensor_split_spec(model_spec *own, const model_spec *spec, const train_model *model,
                              const tensor_cut *cuts, int ranks, int rank);

/** @param cut, use  of the node in the whole network
 *  @param number  number of the tensor in its node: 0 for the weight, 1 for the bias
 *  @param count  elements of the tensor
 *  @return how the ranks divide the tensor; tensor_order_whole() if each rank has all of it. */
tensor_order tensor_split_order(tensor_cut cut, const op_use *use, int number, size_t count,
                                int ranks);

#endif

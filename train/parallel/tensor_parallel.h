/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_parallel: describes the whole network on a tensor rank, which computes a share of its
 * layers, and maps parameters between the whole network and the share. The share is a complete
 * network (tensor_split.h), which a pipeline may cut and ZeRO may split; checkpoints and users of
 * the library only deal with the parameters of the whole network.
 */
#ifndef TRAIN_TENSOR_PARALLEL_H
#define TRAIN_TENSOR_PARALLEL_H

#include "model.h"
#include "tensor_order.h"

typedef struct tensor_parallel {
    int ranks, rank;      /* number of tensor ranks, and this one; {1, 0} without tensor ranks, then
                             all other members are 0 */
    ring_comm *comm;      /* the tensor ranks of one stage and data-parallel rank; borrowed */
    train_model whole;    /* the whole network, only planned */
    tensor_order *orders; /* [whole.tensors.count] how the ranks divide each tensor */
    model_spec own;       /* this rank's share */
} tensor_parallel;

/** Splits the network @p spec. The caller has set tensor->ranks, rank and comm.
 *  @return RING_OK; RING_ERR_MEMORY; RING_ERR_CONFIG: the layers cannot be split among so many
 * ranks. Free with tensor_parallel_destroy() whatever the result. */
ring_status tensor_parallel_create(tensor_parallel *tensor, const model_spec *spec);
void tensor_parallel_destroy(tensor_parallel *tensor);

/** @return number of the tensor @p name in the whole network. Tensors have the same names in the
 * whole network and in this rank's share. */
int tensor_parallel_number(const tensor_parallel *tensor, const char *name);

/** Draws the initial parameters of the whole network, as model_init() does, and copies this rank's
 *  parts of them.
 *  @param table  tensors of this rank's share, or of a pipeline stage of it
 *  @param[out] params  by the offsets of @p table. @return RING_OK or RING_ERR_MEMORY. */
ring_status tensor_parallel_init(tensor_parallel *tensor, const tensor_table *table, uint64_t seed,
                                 float *params);

/** Sets counted_elsewhere for the tensors of @p table that all tensor ranks have in full, except on
 *  tensor rank 0, so that the norm counts them once. */
void tensor_parallel_mark(const tensor_parallel *tensor, const tensor_table *table);

/** Gathers all parameters of the whole network. Collective over the tensor ranks.
 *  @param own  parameters of this rank's share, by the offsets of @p table
 *  @param[out] params  [whole.tensors.elements] by the offsets of whole.tensors. */
ring_status tensor_parallel_gather(const tensor_parallel *tensor, const tensor_table *table,
                                   const float *own, float *params);

/** @return how many layers are split among the ranks. */
int tensor_parallel_layers(const tensor_parallel *tensor);

#endif

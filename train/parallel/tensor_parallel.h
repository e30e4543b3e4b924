/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_parallel: describes the whole network on a rank that computes a share of its layers
 * together with other ranks. The share is a network like any other (tensor_split.h), which a
 * pipeline may cut and ZeRO may split; callers outside see the parameters of the whole network.
 */
#ifndef TRAIN_TENSOR_PARALLEL_H
#define TRAIN_TENSOR_PARALLEL_H

#include "model.h"
#include "tensor_order.h"

typedef struct tensor_parallel {
    int ranks, rank;      /* {1, 0} without tensor ranks; then nothing else is set */
    ring_comm *comm;      /* borrowed; of one stage and data-parallel rank */
    train_model whole;    /* planned */
    tensor_order *orders; /* [whole.tensors.count] in which the ranks have them */
    model_spec own;       /* this rank's network */
} tensor_parallel;

/** Splits @p spec; ranks and rank are set. Free with tensor_parallel_destroy() whatever the result.
 *  @return RING_OK, RING_ERR_MEMORY, or as tensor_split_find(). */
ring_status tensor_parallel_create(tensor_parallel *tensor, const model_spec *spec);
void tensor_parallel_destroy(tensor_parallel *tensor);

/** @return the tensor of the whole that has the name of one of this rank's. */
int tensor_parallel_number(const tensor_parallel *tensor, const char *name);

/** Draws the parameters of the whole, as model_init() does, and keeps this rank's.
 *  @param table  of this rank's network, or of a stage of it
 *  @param[out] params  by the table's offsets. @return RING_OK or RING_ERR_MEMORY. */
ring_status tensor_parallel_init(tensor_parallel *tensor, const tensor_table *table, uint64_t seed,
                                 float *params);

/** Says which parameters of @p table other tensor ranks count: those that all have. */
void tensor_parallel_mark(const tensor_parallel *tensor, const tensor_table *table);

/** Collective over the tensor ranks.
 *  @param own  parameters of this rank's network, by the offsets of @p table
 *  @param[out] params  [whole.tensors.elements] by the offsets of whole.tensors. */
ring_status tensor_parallel_gather(const tensor_parallel *tensor, const tensor_table *table,
                                   const float *own, float *params);

/** @return how many layers the ranks share. */
int tensor_parallel_layers(const tensor_parallel *tensor);

#endif

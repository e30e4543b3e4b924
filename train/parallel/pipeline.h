/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline: describes the whole network on a rank that holds one stage of it, and maps tensors of
 * the whole network to tensors of the stage. The stage itself is a complete network (model_part.h),
 * so buckets, ZeRO and the optimiser need not know about pipelines.
 */
#ifndef TRAIN_PIPELINE_H
#define TRAIN_PIPELINE_H

#include "config.h"
#include "partition.h"
#include "pipe_ties.h"
#include "schedule_1f1b.h"

typedef struct train_pipeline {
    pipe_place place;  /* {1, 0} without a pipeline; then all other members are 0 */
    ring_comm *comm;   /* the stages of one data-parallel rank; borrowed */
    int *starts;       /* [stages + 1] first node of each stage, and node_count */
    train_model whole; /* the whole network, only planned; its params and grads point to this
                          stage's tensors, and are NULL for all others */
    int *locals;    /* [whole.tensors.count] number of the tensor in this stage, or -1. For a tied
                       tensor of the whole network, only its original is set */
    pipe_ties ties; /* tensors that several stages have */
} train_pipeline;

/** Cuts the network into stages by config->partition.
 *  @param comm  the stages of one data-parallel rank; borrowed
 *  @param[out] part  this rank's stage, to be freed with model_spec_free()
 *  @return RING_OK, RING_ERR_CONFIG or RING_ERR_MEMORY. Free with pipeline_destroy() whatever the
 *  result. */
ring_status pipeline_create(train_pipeline *pipeline, const pipeline_config *config,
                            pipe_place place, ring_comm *comm, const model_spec *spec,
                            model_spec *part);
void pipeline_destroy(train_pipeline *pipeline);

/** Maps the tensors of the whole network to those of @p model, this rank's stage, and marks the
 *  buckets with parameters that other stages have as well. */
void pipeline_find(train_pipeline *pipeline, const train_model *model,
                   const train_partition *partition);

/** Points the whole network's params and grads to those of @p model, this rank's stage. */
void pipeline_place(train_pipeline *pipeline, const train_model *model);

/** @return the number in this rank's stage of tensor @p tensor of the whole network, or -1 if only
 *  other stages have it. */
int pipeline_local(const train_pipeline *pipeline, int tensor);

/** Makes communicators for the parameters that several stages have. Collective over the stages. */
ring_status pipeline_join(train_pipeline *pipeline);

/** @return whether this rank has the first stage, which reads images. */
bool pipeline_is_first(const train_pipeline *pipeline);

/** @return whether this rank has the last stage, which computes the outputs and the loss. */
bool pipeline_is_last(const train_pipeline *pipeline);

/** Gathers the parameters of all stages. Collective over the stages.
 *  @param own  parameters of this rank's stage, by the offsets of its table @p tensors
 *  @param[out] params  [whole.tensors.elements] parameters of all stages, by the offsets of
 *  pipeline->whole.tensors. */
ring_status pipeline_gather(const train_pipeline *pipeline, const tensor_table *tensors,
                            const float *own, float *params);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline: describes the whole network on a rank that holds one stage of it. The stage itself is a
 * network like any other (model_part.h), so buckets, ZeRO and the optimiser do not depend on
 * pipelines.
 */
#ifndef TRAIN_PIPELINE_H
#define TRAIN_PIPELINE_H

#include "config.h"
#include "partition.h"
#include "pipe_ties.h"
#include "schedule_1f1b.h"

typedef struct train_pipeline {
    pipe_place place;  /* {1, 0} without a pipeline; then nothing else is set */
    ring_comm *comm;   /* borrowed; the stages of one data-parallel rank */
    int *starts;       /* [stages + 1] first nodes */
    train_model whole; /* planned; its params are those of the stage, elsewhere NULL */
    int *locals;       /* [whole.tensors.count] originals: their tensor in the stage, or -1 */
    pipe_ties ties;
} train_pipeline;

/** Cuts the network as @p config says.
 *  @param comm  of the stages. @param[out] part  this rank's stage, to be freed by the caller.
 *  Free with pipeline_destroy() whatever the result. @return RING_OK, RING_ERR_CONFIG,
 *  RING_ERR_MEMORY. */
ring_status pipeline_create(train_pipeline *pipeline, const pipeline_config *config,
                            pipe_place place, ring_comm *comm, const model_spec *spec,
                            model_spec *part);
void pipeline_destroy(train_pipeline *pipeline);

/** Finds the tensors of the stage among those of the whole, and marks buckets with parameters that
 *  other stages share. */
void pipeline_find(train_pipeline *pipeline, const train_model *model,
                   const train_partition *partition);

/** Tells where the stage's parameters lie: as @p model's. */
void pipeline_place(train_pipeline *pipeline, const train_model *model);

/** @return the tensor of the stage that is the original @p tensor of the whole, or -1: another
 *  stage has it. */
int pipeline_local(const train_pipeline *pipeline, int tensor);

/** Collective over the stages. Makes communicators for the parameters that stages share. */
ring_status pipeline_join(train_pipeline *pipeline);

/** @return true on the ranks that read images, and on those that have outputs and labels. */
bool pipeline_is_first(const train_pipeline *pipeline);
bool pipeline_is_last(const train_pipeline *pipeline);

/** Collective over the stages.
 *  @param own  the stage's parameters, by the offsets of its @p tensors
 *  @param[out] params  [whole.tensors.elements] of all stages, by the offsets of
 *  pipeline->whole.tensors. */
ring_status pipeline_gather(const train_pipeline *pipeline, const tensor_table *tensors,
                            const float *own, float *params);

#endif

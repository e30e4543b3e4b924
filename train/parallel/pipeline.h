/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline: what a rank knows of the whole network when it holds one stage of it. The stage itself
 * is a network like any other (model_part.h), so buckets, ZeRO and optimiser know of no pipeline.
 */
#ifndef TRAIN_PIPELINE_H
#define TRAIN_PIPELINE_H

#include "config.h"
#include "partition.h"
#include "pipe_ties.h"
#include "schedule_1f1b.h"

typedef struct train_pipeline {
    pipe_place place;  /* {1, 0} without a pipeline; then nothing else is set */
    ring_comm *comm;   /* borrowed; the ranks with the same share of the data, by stages */
    int *starts;       /* [stages + 1] first nodes */
    train_model whole; /* planned; its params are those of the stage, elsewhere NULL */
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

/** Tells where the stage's parameters lie: as @p model's. Marks buckets with parameters that other
 *  stages share. */
void pipeline_place(train_pipeline *pipeline, const train_model *model,
                    const train_partition *partition);

/** Collective over the stages: makes the communicators for what they share. */
ring_status pipeline_join(train_pipeline *pipeline);

/** @return true on the ranks that read images, and on those that have outputs and labels. */
bool pipeline_is_first(const train_pipeline *pipeline);
bool pipeline_is_last(const train_pipeline *pipeline);

/** Collective over the stages. @param[out] params  [whole.tensors.elements] of all stages, by the
 *  offsets of pipeline->whole.tensors. */
ring_status pipeline_gather(const train_pipeline *pipeline, float *params);

/** Collective over the stages: sums in their order.
 *  @param sums  [stages, count]; each stage gives its row, and the first row becomes the sum. */
ring_status pipeline_sum(const train_pipeline *pipeline, double *sums, size_t count);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * estimate: predicts how much memory a rank will use before training starts. It calls the same
 * functions that compute the sizes of the real allocations.
 */
#ifndef TRAIN_ESTIMATE_H
#define TRAIN_ESTIMATE_H

#include <stdio.h>

#include "train_engine.h"

/** Bytes of one rank. */
typedef struct memory_estimate {
    size_t params, grads, states; /* held all the time; float32 masters are states */
    size_t files;                 /* offloaded arrays, in addition */
    size_t live;                  /* buckets that are worked on */
    size_t activations; /* outputs, their gradients, what layers keep, their scratch, samples and
                           labels */
} memory_estimate;

/** @return the memory of stage @p zero_stage of ZeRO on a rank of @p engine, which engine_plan()
 * made.
 */
memory_estimate estimate_memory(const train_engine *engine, int zero_stage);

/** Writes the bytes that a rank takes, of the stage of the pipeline that takes most, and which keys
 *  make them fewer, and by how much: micro-batch, tokens, activation checkpointing, stage of ZeRO.
 *  @param samples_max  of a rank an epoch */
void estimate_advice(const train_config *config, const model_spec *spec, size_t samples_max,
                     const train_grid *grid, char *text, size_t room);

/** Prints a line for each stage of ZeRO, of one rank of each stage of the pipeline; the configured
 *  one is marked.
 *  @param samples_max  of a rank an epoch; SIZE_MAX: not known
 *  @return RING_OK, or what engine_plan() or the configured stage is refused for. */
ring_status estimate_print(const train_config *config, const model_spec *spec, size_t samples_max,
                           const train_grid *grid, FILE *out);

#endif

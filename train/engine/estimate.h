/* SPDX-License-Identifier: Apache-2.0
 *
 * estimate: predicts how much memory a rank will use before training starts. It calls the same
 * functions that compute the sizes of the real allocations.
 */
#ifndef TRAIN_ESTIMATE_H
#define TRAIN_ESTIMATE_H

#include <stdio.h>

#include "train_engine.h"

/** Memory of one rank in bytes, at the place of its network. A GPU has cuBLASLt's workspace in
 *  addition, and the host has the samples and labels, too. */
typedef struct memory_estimate {
    size_t params, grads, states; /* held all the time; float32 masters count as states */
    size_t files;                 /* offloaded arrays, which are not in memory */
    size_t live;                  /* arrays for the buckets in use (zero_live_bytes()) */
    size_t activations; /* outputs of layers and their gradients, values that layers keep for
                           backward, their scratch memory, samples and labels */
} memory_estimate;

/** @return the memory that a rank would need with stage @p zero_stage of ZeRO.
 *  @param engine  planned by engine_plan() */
memory_estimate estimate_memory(const train_engine *engine, int zero_stage);

/** Writes a line of text: how much memory a rank of the largest pipeline stage needs, and how much
 *  it would need with other values of some keys (micro-batch, tokens, activation checkpointing,
 *  stage of ZeRO) that need less.
 *  @param samples_max  samples of a rank in an epoch
 *  @param[out] text  [room] truncated if the line is longer */
void estimate_advice(const train_config *config, const model_spec *spec, size_t samples_max,
                     const train_grid *grid, char *text, size_t room);

/** Prints a table for a rank of each pipeline stage: one line for each stage of ZeRO, where an
 *  asterisk marks the configured one.
 *  @param samples_max  samples of a rank in an epoch; SIZE_MAX: not known
 *  @return RING_OK, or the error of engine_plan(). */
ring_status estimate_print(const train_config *config, const model_spec *spec, size_t samples_max,
                           const train_grid *grid, FILE *out);

#endif

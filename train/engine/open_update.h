/* SPDX-License-Identifier: Apache-2.0
 *
 * open_update: lets a caller carry out an update call by call, as users of DeepSpeed do: forward,
 * loss and backward of each micro-batch, then the step. It runs the same list of instructions as
 * engine_update() and pauses where the caller must act. Pipelines cannot use it, since their stages
 * work on different micro-batches at the same time.
 */
#ifndef TRAIN_OPEN_UPDATE_H
#define TRAIN_OPEN_UPDATE_H

#include "update_run.h"

typedef enum open_phase {
    OPEN_CLOSED,     /* no update is in progress */
    OPEN_WAITS,      /* the next call is forward; after the last micro-batch it is the step */
    OPEN_HAS_OUTPUT, /* forward has run; the next call is loss */
    OPEN_HAS_LOSS,   /* the gradient of the loss is set; the next call is backward */
} open_phase;

typedef struct open_update {
    update_machine machine;
    update_batch batch;
    open_phase phase;
    int micro;         /* micro-batches whose backward pass has ended */
    int micro_batches; /* of the whole update */
    size_t rows;       /* samples of the current micro-batch */
    double weight;     /* update_samples.weight of the current micro-batch */
    double loss;       /* sum of its losses, times weight */
} open_update;

/** Begins an update. Cheap; @p engine is borrowed until the update is closed.
 *  @param share  its order, samples, micro and next are ignored, since open_update_forward() gets
 *  the samples of each micro-batch. @return RING_OK or RING_ERR_MEMORY. */
ring_status open_update_begin(open_update *update, train_engine *engine, const engine_share *share);

/** The samples of one micro-batch. */
typedef struct update_samples {
    const train_dataset *dataset;
    const uint32_t *order; /* [rows] */
    size_t rows;           /* at most the model's largest batch; 0: this rank has no samples left */
    double weight;         /* each sample counts as this many samples of the update */
} update_samples;

/** Runs the forward pass of the next micro-batch. Collective. The arrays of @p samples are borrowed
 *  until the backward pass has ended. */
ring_status open_update_forward(open_update *update, const update_samples *samples);

/** Computes the engine's loss and its gradient from the output. @param labels  [rows, labels of a
 *  sample] @return the mean loss over the rows. */
double open_update_loss(open_update *update, const uint32_t *labels);

/** Sets a loss that the caller has computed, and its gradient.
 *  @param gradient  [rows, output] with respect to the output
 *  @param factor  @p loss and @p gradient multiplied by this are a mean over the rows */
void open_update_own_loss(open_update *update, double loss, const float *gradient, double factor);

/** Runs the backward pass of the micro-batch, from the gradient of the loss. Collective. */
ring_status open_update_backward(open_update *update);

/** @return whether all micro-batches are complete. */
bool open_update_is_whole(const open_update *update);

/** Runs the rest of the update: norm, clipping and optimiser. Collective. The update is closed
 *  afterwards, whatever the result. */
ring_status open_update_finish(open_update *update, double lr, engine_result *result);

/** Waits for calls in flight and drops the update; no parameter has changed. */
void open_update_drop(open_update *update);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * open_update: lets a caller carry out an update piece by piece, as users of DeepSpeed do: forward,
 * loss and backward of each micro-batch, then the step. It runs the same list as engine_update()
 * and pauses where the caller must act. Pipelines cannot use it, since their stages are at
 * different micro-batches at the same time.
 */
#ifndef TRAIN_OPEN_UPDATE_H
#define TRAIN_OPEN_UPDATE_H

#include "update_run.h"

typedef enum open_phase {
    OPEN_CLOSED,     /* no update is in progress */
    OPEN_WAITS,      /* for the forward pass of a micro-batch, or after the last one for the step */
    OPEN_HAS_OUTPUT, /* has an output but no gradient of the loss yet */
    OPEN_HAS_LOSS,   /* has the gradient of the loss too: backward may run */
} open_phase;

typedef struct open_update {
    update_machine machine;
    update_batch batch;
    open_phase phase;
    int micro; /* micro-batches whose backward has ended */
    int micro_batches;
    size_t rows; /* of the current micro-batch */
    double weight, loss;
} open_update;

/** Begins an update. Cheap; all but @p engine is copied. @param share order, samples, micro and
 *  next are ignored, since each micro-batch has its own. @return RING_OK or RING_ERR_MEMORY. */
ring_status open_update_begin(open_update *update, train_engine *engine, const engine_share *share);

/** A micro-batch. */
typedef struct update_samples {
    const train_dataset *dataset;
    const uint32_t *order; /* [rows] */
    size_t rows;           /* at most the model's largest batch; 0: this rank has none left */
    double weight;         /* how many samples of the update each of them counts for */
} update_samples;

/** Collective. Forward of the next micro-batch; samples are borrowed until its backward. */
ring_status open_update_forward(open_update *update, const update_samples *samples);

/** The engine's loss against @p labels, and its gradient. @return the mean over the rows. */
double open_update_loss(open_update *update, const uint32_t *labels);

/** Takes the caller's loss and its @p gradient [rows, output]. Both, multiplied by @p factor, are
 *  those of a mean over the rows. */
void open_update_own_loss(open_update *update, double loss, const float *gradient, double factor);

/** Collective. Backward of the micro-batch, from the gradient of the loss. */
ring_status open_update_backward(open_update *update);

/** @return whether all micro-batches are complete. */
bool open_update_is_whole(const open_update *update);

/** Collective. Runs the rest of the update: norm, clipping and optimiser. The update is closed
 *  afterwards, whatever the result. */
ring_status open_update_finish(open_update *update, double lr, engine_result *result);

/** Waits for calls in flight and drops the update; no parameter has changed. */
void open_update_drop(open_update *update);

#endif

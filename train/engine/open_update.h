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
    OPEN_CLOSED,     /* nothing is under way */
    OPEN_WAITS,      /* for the forward pass of a micro-batch, or behind the last one the step */
    OPEN_HAS_OUTPUT, /* has an output, and no gradient of the loss yet */
    OPEN_HAS_LOSS,   /* and has it: backward may go on */
} open_phase;

typedef struct open_update {
    update_machine machine;
    update_batch batch;
    open_phase phase;
    int micro; /* micro-batches that are through backward */
    int micro_batches;
    size_t rows; /* of the micro-batch under way */
    double weight, loss;
} open_update;

/** Begins an update. Cheap; all but @p engine is copied. @param share  its order, samples, micro
 *  and next are not used: each micro-batch brings its own. @return RING_OK or RING_ERR_MEMORY. */
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

/** The caller's loss, @p factor times which is a mean over the rows, and @p gradient [rows, output]
 *  of it. */
void open_update_own_loss(open_update *update, double loss, const float *gradient, double factor);

/** Collective. Backward of the micro-batch, from the gradient of the loss. */
ring_status open_update_backward(open_update *update);

/** @return whether all micro-batches are through. */
bool open_update_is_whole(const open_update *update);

/** Collective. The rest of the update: norm, clipping, optimiser. It is closed then, whatever the
 *  result. */
ring_status open_update_finish(open_update *update, double lr, engine_result *result);

/** Ends what runs; no parameter has changed. */
void open_update_drop(open_update *update);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * step_run: the one place where instructions of a schedule are carried out, and timed. Compute runs
 * here and now; what goes over the wire is started, and waited for when something needs it.
 */
#ifndef TRAIN_STEP_RUN_H
#define TRAIN_STEP_RUN_H

#include "train_engine.h"

/** Against losses, gradients and parameters that are not finite. */
#define ADVICE "lower the learning rate or set gradient_clipping"

/** What the instructions of one run work on. */
typedef struct step_batch {
    const train_dataset *dataset;
    const uint32_t *order; /* [samples] of this rank */
    size_t samples;
    size_t micro; /* samples of a micro-batch; the last one may be short */
    bool training;
    double lr;
    double local_loss; /* sum over this rank's samples so far */
    double scale;      /* of the loss's gradient: 1 / samples of the global batch */
    engine_result result;
} step_batch;

/** Collective. Runs the list from its first to its last instruction; all of it has ended when this
 *  returns. */
ring_status step_run(train_engine *engine, const step_schedule *schedule, step_batch *batch);

#endif

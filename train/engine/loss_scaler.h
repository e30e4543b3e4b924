/* SPDX-License-Identifier: Apache-2.0
 *
 * loss_scaler: keeps the factor by which the loss is multiplied so that small gradients do not
 * become zero in 16 bits. It implements DeepSpeed's rule as a state machine: the hysteresis allows
 * a number of overflows, after which each further one halves the scale; a window of updates without
 * an overflow doubles the scale.
 */
#ifndef TRAIN_LOSS_SCALER_H
#define TRAIN_LOSS_SCALER_H

#include "precision.h"

typedef struct loss_scaler {
    bool dynamic;       /* false: the scale is fixed */
    bool consecutive;   /* each update without an overflow restores the hysteresis */
    bool old_window;    /* counts the window as DeepSpeed 0.13 does */
    double scale;       /* the current scale */
    double least;       /* the scale is never lowered below this */
    long window;        /* updates without an overflow after which the scale is doubled */
    int delay;          /* hysteresis: the number of the overflow that halves the scale */
    int left;           /* overflows until the scale is halved, from delay down to 1 */
    long iteration;     /* updates so far */
    long last_overflow; /* the iteration of the latest overflow; -1: there was none */
} loss_scaler;

typedef enum scaler_verdict {
    SCALER_STEP,    /* no overflow */
    SCALER_SKIP,    /* overflow: the scale is fixed */
    SCALER_WAIT,    /* overflow: the remaining hysteresis was reduced by one */
    SCALER_LOWER,   /* overflow: the scale was halved, but not below the least scale */
    SCALER_AT_LEAST /* overflow at the least scale: the state is unchanged, and training must end */
} scaler_verdict;

/** @return a scaler with the configured initial scale. */
loss_scaler loss_scaler_start(const precision_config *precision);

/** Records an update and adjusts the scale. @param overflow  whether a gradient was not finite */
scaler_verdict loss_scaler_update(loss_scaler *scaler, bool overflow);

#endif

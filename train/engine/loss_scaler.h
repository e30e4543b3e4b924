/* SPDX-License-Identifier: Apache-2.0
 *
 * loss_scaler: keeps the factor by which the loss is multiplied so that small gradients do not
 * become zero in 16 bits. It is DeepSpeed's rule as a state machine: the scale is halved when
 * gradients overflow, once the hysteresis is used up, and doubled after a window of updates without
 * an overflow.
 */
#ifndef TRAIN_LOSS_SCALER_H
#define TRAIN_LOSS_SCALER_H

#include "precision.h"

typedef struct loss_scaler {
    bool dynamic; /* else the scale stays, and overflows are only counted by the caller */
    bool consecutive, old_window;
    double scale, least;
    long window;
    int delay, left; /* overflows until the scale is halved: at most, and now */
    long iteration, last_overflow;
} loss_scaler;

typedef enum scaler_verdict {
    SCALER_STEP,    /* no overflow */
    SCALER_SKIP,    /* overflow, the scale stays as it is fixed */
    SCALER_WAIT,    /* overflow, the hysteresis is one less */
    SCALER_LOWER,   /* overflow: the scale was halved, down to the minimum */
    SCALER_AT_LEAST /* overflow at the least scale; nothing changes any more */
} scaler_verdict;

loss_scaler loss_scaler_start(const precision_config *precision);

/** One update has gone by. */
scaler_verdict loss_scaler_update(loss_scaler *scaler, bool overflow);

#endif

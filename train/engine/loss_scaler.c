/* SPDX-License-Identifier: Apache-2.0
 * Implements the rule by which the scale falls after an overflow and grows after a window of
 * updates without an overflow. */
#include "loss_scaler.h"

#include <math.h>

loss_scaler loss_scaler_start(const precision_config *precision)
{
    const precision_settings *set = &precision->set;
    const bool dynamic = precision->scales && set->loss_scale == 0.0;
    const double fixed = precision->scales ? set->loss_scale : 1.0;
    return (loss_scaler){.dynamic = dynamic,
                         .consecutive = set->consecutive_hysteresis,
                         .old_window = precision->old_window,
                         .scale = dynamic ? ldexp(1.0, (int)set->scale_power) : fixed,
                         .least = (double)set->min_scale,
                         .window = set->scale_window,
                         .delay = (int)set->hysteresis,
                         .left = (int)set->hysteresis,
                         .last_overflow = -1};
}

static scaler_verdict lower(loss_scaler *scaler)
{
    if (scaler->delay != 1 && scaler->left != 1) {
        scaler->left--;
        return SCALER_WAIT;
    }
    if (scaler->scale == scaler->least)
        return SCALER_AT_LEAST;
    scaler->scale = fmax(scaler->scale / 2.0, scaler->least);
    return SCALER_LOWER;
}

/* Doubles the scale at the end of a window. A window begins with the first update after an overflow
 * in DeepSpeed 0.13, and with the second one in later versions. */
static void raise_after_window(loss_scaler *scaler)
{
    const long since = scaler->iteration - scaler->last_overflow;
    const long stable = scaler->old_window ? since : since - 1;
    if (scaler->consecutive)
        scaler->left = scaler->delay;
    if (stable <= 0 || stable % scaler->window != 0)
        return;
    scaler->left = scaler->delay;
    scaler->scale *= 2.0;
}

scaler_verdict loss_scaler_update(loss_scaler *scaler, bool overflow)
{
    scaler_verdict verdict = overflow ? SCALER_SKIP : SCALER_STEP;
    if (!scaler->dynamic)
        return verdict;
    if (!overflow)
        raise_after_window(scaler);
    else
        verdict = lower(scaler);
    if (verdict == SCALER_AT_LEAST)
        return verdict;
    if (overflow)
        scaler->last_overflow = scaler->iteration;
    scaler->iteration++;
    return verdict;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule: computes the learning rate of an update as a pure function of the update's number. The
 * rates are equal to those of the schedules with the same names in DeepSpeed and PyTorch, for any
 * number of ranks.
 */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include "config.h"

/** @return the rate of the schedule at @p iteration, from 0.
 *  @param base_lr  the rate in the configuration of the optimiser
 *  @param iteration  DeepSpeed's last_batch_iteration; for PyTorch's schedulers last_epoch */
double schedule_at(const schedule_config *schedule, double base_lr, long iteration);

/** @return the rate of update @p update (from 1). DeepSpeed's schedulers step after each update, so
 *  update k >= 2 has the rate of iteration k - 2. The first update has the rate that the
 * scheduler's constructor sets, with two exceptions in which it has the optimiser's rate @p
 * base_lr: if the configuration sets last_batch_iteration, and for warm-ups with @p compat
 * (DeepSpeed before 0.15.3). With PyTorch's schedulers, update k has iteration k - 1. Without a
 * scheduler, all updates have @p base_lr. */
double schedule_lr(const schedule_config *schedule, double base_lr, long update, bool compat);

/** The rates that the schedule changes from update to update. */
typedef struct schedule_rates {
    double lr, no_decay_lr; /* of the parameter groups with and without weight decay */
    double betas[2];
} schedule_rates;

/** @return the rates of update @p update (from 1); @p compat is as in schedule_lr(). */
schedule_rates schedule_rates_of(const schedule_config *schedule, const optimizer_config *optimizer,
                                 long update, bool compat);

#endif

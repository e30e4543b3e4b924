/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule: computes the learning rate of an update as a pure function of its number. The values
 * equal those of the schedules of the same names in DeepSpeed and PyTorch. Updates are counted, so
 * the number of ranks does not matter.
 */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include "config.h"

/** @return DeepSpeed's rate at @p iteration (its last_batch_iteration, from 0; PyTorch's
 *  last_epoch for its schedulers). @param base_lr  the optimiser's own. */
double schedule_at(const schedule_config *schedule, double base_lr, long iteration);

/** @return the rate that update @p update (from 1) uses. The scheduler steps after each
 *  update, so update k >= 2 has iteration k - 2 of DeepSpeed's, k - 1 of PyTorch's. The first one
 *  has the rate that the scheduler's constructor sets; or the optimiser's own, @p base_lr, without
 *  a scheduler, when a run is continued (last_batch_iteration), or for warm-ups in DeepSpeed before
 *  0.15.3 (@p compat). */
double schedule_lr(const schedule_config *schedule, double base_lr, long update, bool compat);

/** The rates that the schedule changes from update to update. */
typedef struct schedule_rates {
    double lr, no_decay_lr; /* of the parameter groups with and without weight decay */
    double betas[2];
} schedule_rates;

/** @return those of update @p update; @p compat as in schedule_lr(). */
schedule_rates schedule_rates_of(const schedule_config *schedule, const optimizer_config *optimizer,
                                 long update, bool compat);

#endif

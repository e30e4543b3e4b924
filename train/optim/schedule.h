/* SPDX-License-Identifier: Apache-2.0
 *
 * schedule: the learning rate of an update, a pure function of its number, equal to
 * DeepSpeed's WarmupLR and WarmupDecayLR.
 */
#ifndef TRAIN_SCHEDULE_H
#define TRAIN_SCHEDULE_H

#include "config.h"

/** @return DeepSpeed's rate at @p iteration (its last_batch_iteration, from 0). */
double schedule_at(const schedule_config *schedule, long iteration);

/** @return the rate that update @p update (from 1) uses. The scheduler steps after each
 *  update, so update k >= 2 has iteration k - 2. The first one has the rate that the
 *  scheduler's constructor sets, the minimum; or the optimiser's own, @p base_lr, without
 *  a scheduler, when a run is continued (last_batch_iteration), or in DeepSpeed before
 *  0.15.3 (@p compat). */
double schedule_lr(const schedule_config *schedule, double base_lr, long update, bool compat);

#endif

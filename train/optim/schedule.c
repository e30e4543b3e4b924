/* SPDX-License-Identifier: Apache-2.0
 * Warm-up, then constant or straight down to the minimum at total_steps. */
#include "schedule.h"

#include <math.h>

static double warmup_factor(const schedule_config *schedule, long iteration, long warmup)
{
    if (schedule->linear)
        return (double)iteration / (double)warmup;
    return 1.0 / log((double)warmup) * log((double)(iteration + 1));
}

static double decay_factor(const schedule_config *schedule, long iteration, long warmup)
{
    const double left = (double)(schedule->total_steps - iteration);
    const double whole = fmax(1.0, (double)(schedule->total_steps - warmup));
    return fmax(0.0, left / whole);
}

double schedule_at(const schedule_config *schedule, long iteration)
{
    const long warmup = schedule->warmup_steps > 2 ? schedule->warmup_steps : 2;
    double factor = 1.0;
    if (iteration < warmup)
        factor = warmup_factor(schedule, iteration, warmup);
    else if (schedule->kind == SCHEDULE_WARMUP_DECAY)
        factor = decay_factor(schedule, iteration, warmup);
    return schedule->min_lr + (schedule->max_lr - schedule->min_lr) * factor;
}

double schedule_lr(const schedule_config *schedule, double base_lr, long update, bool compat)
{
    if (schedule->kind == SCHEDULE_CONSTANT)
        return base_lr;
    if (update > 1)
        return schedule_at(schedule, schedule->last_iteration + update - 1);
    return compat || schedule->last_iteration >= 0 ? base_lr : schedule->min_lr;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * run_progress: tracks the position of a run in its data, from update to update and from epoch to
 * epoch, and saves and restores it with checkpoints.
 */
#ifndef TRAIN_RUN_PROGRESS_H
#define TRAIN_RUN_PROGRESS_H

#include "schedule.h"
#include "trainer.h"

/** Moves to the first update of epoch @p epoch (from 1), and shuffles the samples for it. */
void progress_begin_epoch(trainer *made, int epoch);

/** @return whether no updates are left in the epoch. */
bool progress_epoch_over(const trainer *made);

/** @return number of updates that are left in the epoch. */
size_t progress_left(const trainer *made);

/** @return this rank's share of the next update. */
engine_share progress_share(const trainer *made);

/** @return the rates of the next update by the configured schedule, which does not count skipped
 *  updates. */
schedule_rates progress_rates(const trainer *made);

/** Sets the rates of the next update. @param own_lr  replaces the schedule's learning rate; or NULL
 *  @return the learning rate. */
double progress_set_rates(trainer *made, const double *own_lr);

/** Saves a checkpoint with the current position of the run, by checkpoint_save(). Collective. */
ring_status progress_save(trainer *made, const char *dir, int keep);

/** Moves to the position of a checkpoint, as near to it as the number of ranks allows.
 *  @return number of samples of the epoch that will be used a second time. */
size_t progress_go_to(trainer *made, const run_place *place);

#endif

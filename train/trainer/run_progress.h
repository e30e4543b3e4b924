/* SPDX-License-Identifier: Apache-2.0
 *
 * run_progress: advances a run from update to update and from epoch to epoch.
 */
#ifndef TRAIN_RUN_PROGRESS_H
#define TRAIN_RUN_PROGRESS_H

#include "schedule.h"
#include "trainer.h"

/** Goes to the first update of an epoch. */
void progress_begin_epoch(trainer *made, int epoch);
bool progress_epoch_over(const trainer *made);

/** @return updates that are left of the epoch. */
size_t progress_left(const trainer *made);

/** @return this rank's part of the next update. */
engine_share progress_share(const trainer *made);

/** @return what the next update takes by the schedule; those that are skipped are not counted. */
schedule_rates progress_rates(const trainer *made);

/** Sets the rates of the next update. @param own_lr  instead of the schedule's; or NULL
 *  @return its learning rate. */
double progress_set_rates(trainer *made, const double *own_lr);

/** Collective. Saves a checkpoint of where the run is: see checkpoint_save(). */
ring_status progress_save(trainer *made, const char *dir, int keep);

/** Goes to where a checkpoint was made. @return how many samples of the epoch are taken again. */
size_t progress_go_to(trainer *made, const run_place *place);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * run_saving: manages the checkpoints of one run: in which folder they are saved, when one is due,
 * and at which one the run begins. All functions are collective except run_saving_due() and
 * run_saving_close().
 */
#ifndef TRAIN_RUN_SAVING_H
#define TRAIN_RUN_SAVING_H

#include "report.h"
#include "trainer.h"
#include "training.h"

typedef struct run_saving {
    const run_options *options; /* borrowed */
    trainer *made;              /* borrowed */
    train_report *report;       /* borrowed */
    int lock;                   /* of the folder, on rank 0 */
    long begun;                 /* the step from which the run resumed; -1: it did not */
    long saved;                 /* the step of the newest checkpoint; -1: not yet saved */
} run_saving;

/** Opens the folder, and loads the engine from a checkpoint or from the file of --init, if either
 *  is given.
 *  @param made  made->run.place becomes the place of the checkpoint; without one it is unchanged.
 *  Close with run_saving_close() whatever the result. */
ring_status run_saving_start(run_saving *saving, const run_options *options, trainer *made,
                             train_report *report);
/** Prints the settings that have changed since the checkpoint, if the run resumed from one. */
void run_saving_report_changes(run_saving *saving);
void run_saving_close(run_saving *saving);

/** @return whether to save a checkpoint after update @p step. */
bool run_saving_due(const run_saving *saving, long step, bool epoch_over);

/** Saves, unless there is no folder or this step is saved already. If a checkpoint cannot be
 *  written, this is reported and training continues; for the @p last one it is an error. */
ring_status run_saving_save(run_saving *saving, bool last);

#endif

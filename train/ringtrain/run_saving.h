/* SPDX-License-Identifier: Apache-2.0
 *
 * run_saving: manages the checkpoints of one run. It opens their folder, loads the checkpoint from
 * which the run resumes, and decides when to save the next one. All functions are collective except
 * run_saving_due() and run_saving_close().
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
    int lock;                   /* lock of the folder, on rank 0; see step_folders_open() */
    long begun;                 /* the update from which the run resumed; -1: it did not resume */
    long saved; /* the update of this run's newest checkpoint; -1: there is no checkpoint */
} run_saving;

/** Opens the folder, and loads the engine from a checkpoint or from the file of --init, if either
 *  is given.
 *  @param made  made->run.place becomes the place of the checkpoint, if one is loaded.
 *  Close with run_saving_close() whatever the result. */
ring_status run_saving_start(run_saving *saving, const run_options *options, trainer *made,
                             train_report *report);
/** Prints the settings that have changed since the checkpoint, if the run resumed from one. */
void run_saving_report_changes(run_saving *saving);
void run_saving_close(run_saving *saving);

/** @return whether to save a checkpoint after update @p step. */
bool run_saving_due(const run_saving *saving, long step, bool epoch_over);

/** Saves a checkpoint, unless there is no folder or the current update is saved already. If the
 *  checkpoint cannot be written, the failure is printed and training continues; if the checkpoint
 * is the @p last one, the failure is an error. */
ring_status run_saving_save(run_saving *saving, bool last);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * run_saving: the checkpoints of one run: where they go, when one is due, and where the run begins.
 * All calls but run_saving_due() and run_saving_close() are collective.
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
    long begun;                 /* the step that was resumed from; -1: none */
    long saved;                 /* the newest checkpoint's step; -1: none */
} run_saving;

/** Opens the folder, and sets the engine to where the run begins: a checkpoint, --init's file, or
 *  as it is.
 *  @param made  made->run.place becomes where the run begins; as it was if that is the beginning.
 *  Close with run_saving_close() whatever the result. */
ring_status run_saving_start(run_saving *saving, const run_options *options, trainer *made,
                             train_report *report);
/** Names the settings that have changed since the checkpoint, if the run resumed from one. */
void run_saving_tell_changes(run_saving *saving);
void run_saving_close(run_saving *saving);

/** @return whether a checkpoint is to be made behind update @p step. */
bool run_saving_due(const run_saving *saving, long step, bool epoch_over);

/** Saves, unless there is no folder or it has this step already. A checkpoint that cannot be
 *  written is reported, and training continues; unless it is the @p last one. */
ring_status run_saving_save(run_saving *saving, bool last);

#endif

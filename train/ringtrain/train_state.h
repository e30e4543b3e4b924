/* SPDX-License-Identifier: Apache-2.0
 *
 * train_state: holds the whole state of a run of ringtrain on one rank. Functions that set up a run
 * or run it receive the state as their first argument.
 */
#ifndef TRAIN_STATE_H
#define TRAIN_STATE_H

#include "params_dump.h"
#include "run_events.h"
#include "run_saving.h"
#include "trainer.h"
#include "training.h"

typedef struct train_state {
    const run_options *options;
    trainer trainer;
    run_events events;
    output_file dump; /* the file of --dump-params */
    run_saving saving;
    int epochs;                              /* epochs of the whole run */
    long steps;                              /* updates of the whole run */
    long first_step;                         /* updates that earlier starts of the run made */
    int stopped;                             /* the signal that ended the run; 0: no signal */
    engine_score score;                      /* latest results on the test set */
    report_step awaited[ENGINE_AWAITED_MAX]; /* a ring of awaited_count updates, from awaited_first
                                                on, that have been submitted but not reported */
    int awaited_first, awaited_count;
    double reported; /* time of the latest report */
} train_state;

#endif

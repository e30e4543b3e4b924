/* SPDX-License-Identifier: Apache-2.0
 *
 * train_state: all that a run of ringtrain holds, on one rank.
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
    output_file dump; /* of the parameters, if wanted */
    run_saving saving;
    int epochs;      /* of the whole run */
    long steps;      /* updates of the whole run */
    long first_step; /* updates before this start */
    int stopped;     /* the signal that ended the run; 0: none */
    engine_score score;
} train_state;

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * train_state: all that a run of ringtrain holds, on one rank.
 */
#ifndef TRAIN_STATE_H
#define TRAIN_STATE_H

#include "division.h"
#include "grid.h"
#include "params_dump.h"
#include "run_events.h"
#include "run_saving.h"
#include "same.h"
#include "train_engine.h"
#include "training.h"

typedef struct train_state {
    const run_options *options;
    ring_comm *comm;
    int ranks, rank;
    train_grid grid;
    train_config config;
    model_spec spec;
    train_dataset train, test;
    train_sampler sampler;
    train_engine engine;
    run_events events;
    loss_kind loss;
    output_file dump; /* of the parameters, if wanted */
    data_shares shares;
    int epochs;
    run_saving saving;
    char settings[SAME_TEXT_MAX]; /* those that checkpoints tell */
    long step;                    /* updates done */
    long micro_steps;             /* micro-batches of this rank in them */
    long first_step;              /* of those, before this start */
    int epoch;                    /* from 1 */
    size_t updates;               /* of it, since its start or this one's */
    int stopped;                  /* the signal that ended the run; 0: none */
    engine_score score;
} train_state;

#endif

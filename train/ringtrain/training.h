/* SPDX-License-Identifier: Apache-2.0
 *
 * training: carries out one training run, from its options to the test accuracy and the files that
 * it leaves.
 */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include <ring/ring.h>
#include <stdbool.h>

#include "config.h"
#include "loss.h"
#include "pixel_norm.h"
#include "run_events.h"

/** Special values of run_options.check. */
enum { CHECK_NOTHING, CHECK_HERE = -1 };

typedef struct run_options {
    const char *config_path;
    bool accelerate;       /* that file is accelerate's, in YAML */
    const char *data;      /* a folder; NULL, allowed with --check only: not given */
    pixel_norm norm;       /* of images */
    const char *model;     /* the name of a built-in model, or a list of layers: FILE.json */
    const char *dump_path; /* NULL: not wanted */
    const char *save_dir;  /* of checkpoints; NULL: not saved */
    const char *resume;    /* a checkpoint, a folder of them, or "latest" in save_dir; or NULL */
    const char *init_path; /* initial parameters; NULL: drawn at random */
    long save_every;       /* updates; 0: at each epoch's end */
    int keep;              /* checkpoints; 0: all */
    int eval_every;        /* epochs; 0: the test set is not used */
    report_options report;
    events_options events;
    loss_kind loss;    /* LOSS_KINDS: chosen by the kind of data */
    int epochs;        /* 0: as many as max_steps needs, or 1 without it */
    long max_steps;    /* 0: no limit */
    long stages;       /* of the pipeline; 0: as configured */
    long tensor_ranks; /* 0: as configured */
    long batch;        /* samples of a micro-batch of all ranks of a host; 0: as configured */
    uint64_t seed;
    bool compat_ds_0_13, warn_unknown;
    int workers;     /* threads that read ahead */
    bool fp16, bf16; /* used if the configuration does not decide */
    batch_policy policy;
    /* Accepted for compatibility with DeepSpeed, without effect. */
    bool deepspeed_given, local_rank_given;
    const char *backend; /* NULL: not given */
    int check;      /* ranks to check for instead of training; CHECK_HERE: as many as there are */
    double started; /* train_now() at the program's start */
} run_options;

/** Collective. Prints errors: rank 0 prints those that all ranks agreed on, and every other error
 *  is printed by the rank on which it occurred. @return the exit status of the program. */
int run(const run_options *options);

#endif

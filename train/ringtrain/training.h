/* SPDX-License-Identifier: Apache-2.0
 *
 * run: one training run from its options to the test accuracy.
 */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include <ring/ring.h>
#include <stdbool.h>

#include "config.h"
#include "loss.h"
#include "pixel_norm.h"
#include "run_events.h"

/** Of run_options.check. */
enum { CHECK_NOTHING, CHECK_HERE = -1 };

typedef struct run_options {
    const char *config_path;
    bool accelerate;       /* that file is accelerate's, in YAML */
    const char *data;      /* NULL, to check alone: none */
    pixel_norm norm;       /* of images */
    const char *model;     /* a built-in one's name, or a list of layers: FILE.json */
    const char *dump_path; /* NULL: none */
    const char *save_dir;  /* of checkpoints; NULL: none */
    const char *resume;    /* a checkpoint, a folder of them, or "latest" in save_dir; or NULL */
    const char *init_path; /* first parameters; NULL: drawn */
    long save_every;       /* updates; 0: at each epoch's end */
    int keep;              /* checkpoints; 0: all */
    int eval_every;        /* epochs; 0: the test set is not used */
    report_options report;
    events_options events;
    loss_kind loss;    /* LOSS_KINDS: what suits the data */
    int epochs;        /* 0: as many as max_steps takes, else 1 */
    long max_steps;    /* 0: no limit */
    long stages;       /* of the pipeline; 0: as configured */
    long tensor_ranks; /* the same */
    long batch;        /* samples of a micro-batch of all ranks of a host; 0: as the file says */
    uint64_t seed;
    bool compat_ds_0_13, warn_unknown;
    int workers;     /* threads that read ahead */
    bool fp16, bf16; /* where the configuration leaves it open */
    batch_policy policy;
    /* Accepted for DeepSpeed's sake. */
    bool deepspeed_given, local_rank_given;
    const char *backend; /* NULL: not given */
    int check;      /* ranks to check for instead of training; CHECK_HERE: as many as there are */
    double started; /* train_now() at the program's start */
} run_options;

/** Collective. Errors are reported here: by rank 0 what all ranks have agreed on, anything
 *  else by every rank that meets it. @return the exit status of the program. */
int run(const run_options *options);

#endif

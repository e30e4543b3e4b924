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

typedef struct run_options {
    const char *config_path;
    const char *data;
    const char *model;        /* a built-in one's name, or a list of layers: FILE.json */
    const char *metrics_path; /* NULL: none */
    const char *dump_path;    /* NULL: none */
    const char *save_dir;     /* of checkpoints; NULL: none */
    const char *resume;       /* a checkpoint, a folder of them, or "latest" in save_dir; or NULL */
    const char *init_path;    /* first parameters; NULL: drawn */
    long save_every;          /* updates; 0: at each epoch's end */
    int keep;                 /* checkpoints; 0: all */
    int eval_every;           /* epochs; 0: the test set is not used */
    loss_kind loss;           /* LOSS_KINDS: what suits the data */
    int epochs;               /* 0: as many as max_steps takes, else 1 */
    long max_steps;           /* 0: no limit */
    long stages;              /* of the pipeline; 0: as configured */
    uint64_t seed;
    bool compat_ds_0_13, warn_unknown;
    bool fp16, bf16; /* where the configuration leaves it open */
    batch_policy policy;
    bool deepspeed_given, local_rank_given; /* accepted for DeepSpeed's sake */
    double started;                         /* train_now() at the program's start */
} run_options;

/** Collective. Errors are reported here: by rank 0 what all ranks have agreed on, anything
 *  else by every rank that meets it. @return the exit status of the program. */
int run(const run_options *options);

#endif

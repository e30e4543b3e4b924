/* SPDX-License-Identifier: Apache-2.0
 *
 * training: runs one training with the options of the command line. It prints the results and
 * writes the output files.
 */
#ifndef TRAIN_RUN_H
#define TRAIN_RUN_H

#include <ring/ring.h>
#include <stdbool.h>

#include "config.h"
#include "loss.h"
#include "pixel_norm.h"
#include "run_events.h"
#include "trainer.h"

/** Special values of run_options.check: train, or check for the ranks that were started. */
enum { CHECK_NOTHING, CHECK_HERE = -1 };

typedef struct run_options {
    const char *config_path;
    bool accelerate;       /* config_path is accelerate's file */
    const char *data;      /* folder of the data; NULL: not given, allowed only with --check */
    pixel_norm norm;       /* normalization of images */
    const char *model;     /* the name of a built-in model, or a list of layers: FILE.json */
    const char *dump_path; /* file for the final parameters; NULL: not written */
    const char *save_dir;  /* folder for checkpoints; NULL: not saved */
    const char *resume; /* a checkpoint, a folder of checkpoints, "latest" (in save_dir), or NULL */
    const char *init_path; /* file of initial parameters; NULL: random parameters */
    long save_every;       /* updates between checkpoints; 0: save at each epoch's end */
    int keep;              /* number of checkpoints to keep; 0: all */
    int eval_every;        /* epochs between evaluations of the test set; 0: never */
    report_options report;
    events_options events;
    trainer_device device;
    bool tf32;         /* products on a GPU may use TF32 */
    loss_kind loss;    /* LOSS_KINDS: the kind of data decides */
    int epochs;        /* 0: as many as max_steps needs, or 1 without it */
    long max_steps;    /* 0: no limit */
    long stages;       /* pipeline stages; 0: as configured */
    long tensor_ranks; /* 0: as configured */
    long batch;        /* samples in a micro-batch of all ranks of a host; 0: as configured */
    uint64_t seed;
    bool compat_ds_0_13, warn_unknown;
    int workers;     /* threads on each rank that prepare the next micro-batch */
    bool fp16, bf16; /* used if the configuration does not set them */
    batch_policy policy;
    /* Accepted for compatibility with DeepSpeed, without effect. */
    bool deepspeed_given, local_rank_given;
    const char *backend; /* NULL: not given */
    int check;           /* number of ranks to check for, or CHECK_NOTHING or CHECK_HERE */
    double started;      /* train_now() at the start of the program */
} run_options;

/** Collective. An error that all ranks agreed on is printed by rank 0, any other error by the rank
 * on which it occurred. @return the exit status of the program. */
int run(const run_options *options);

#endif

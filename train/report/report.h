/* SPDX-License-Identifier: Apache-2.0
 *
 * report: reports a training run on rank 0. It passes events (the start, an update, the use of
 * devices, the end of an epoch) to a list of sinks: log lines, a progress bar, metrics and
 * DeepSpeed's monitors. Each kind of sink has its own source file. On other ranks the calls do
 * nothing.
 */
#ifndef TRAIN_REPORT_H
#define TRAIN_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "breakdown.h"
#include "config.h"

typedef enum log_style {
    LOG_SHORT,
    LOG_DEEPSPEED, /* like short, with DeepSpeed's line of throughput */
    LOG_NEOX,      /* like short; lines begin with "time [INFO] host: ", and each part of the time
                      has its own line */
    LOG_BRIEF,     /* "Rank[0]: Epoch 1, step 20 / 469, loss 2.3026" */
    LOG_TORCH      /* "rank0, Epoch [1/6], Step [20/469], Loss: 2.3026" */
} log_style;

/** The names of the styles, by log_style; the list ends with NULL. */
extern const char *const log_style_names[];

/** The reports that the command line asks for. If a path is NULL, its report is not written. */
typedef struct report_options {
    const char *metrics_path;      /* file of JSON lines */
    bool append_metrics;           /* append to a file that exists */
    const char *epoch_losses_path; /* file of one JSON object, rewritten after each epoch */
    bool resumed;                  /* keep the earlier epochs in that file */
    log_style style;
} report_options;

/** Facts of the run that are known before the model exists. */
typedef struct report_run {
    const train_config *config;
    report_options options;
    int ranks;
    int epochs; /* epochs of the whole run; set before report_start_run() */
    long steps_per_epoch;
    long steps; /* updates of the whole run; set before report_start_run() */
} report_run;

/** Bytes that one rank allocates. */
typedef struct report_memory {
    uint64_t parameters, gradients, states;
    uint64_t live;        /* the buckets of ZeRO in use */
    uint64_t activations; /* activations, their gradients, and the buffers of operators */
    uint64_t batch;       /* samples and labels */
} report_memory;

/** Use of memory and processor by one rank's process, as the operating system reports it. */
typedef struct report_device {
    double resident, peak; /* bytes */
    double cpu;            /* cores in use on average since the last report, such as 0.98 */
} report_device;

typedef struct report_start {
    const char *model, *loss, *maths; /* names; maths: the library that computes the layers */
    size_t parameters, train_samples, test_samples;
    uint64_t seed;
    const report_memory *memory; /* [ranks] */
} report_start;

/** Results of one update. */
typedef struct report_step {
    long step;       /* from 1 */
    int epoch;       /* from 1 */
    long epoch_step; /* within the epoch, from 1 to run->steps_per_epoch */
    double loss, grad_norm;
    double lr;              /* rate of this update */
    double next_lr;         /* rate of the next update */
    double next_other_lr;   /* next rate of the second parameter group, if there is one */
    double next_betas[2];   /* next betas, if the optimizer has betas */
    long samples;           /* samples of all ranks */
    long all_samples;       /* samples of all ranks in all updates so far */
    long micro_batches;     /* micro-batches of this rank */
    long all_micro_batches; /* micro-batches of this rank in all updates so far */
    long skipped;           /* skipped updates so far */
    double loss_scale;      /* after this update; 0: the loss is not scaled */
    double seconds;
    report_times times; /* times of this rank */
} report_step;

/** Results of one epoch. */
typedef struct report_epoch {
    long step;                    /* updates so far */
    int epoch;                    /* from 1 */
    double loss;                  /* mean over the samples of its updates */
    double accuracy, test_loss;   /* on the test set; NaN: not evaluated */
    long samples;                 /* samples of all ranks */
    long all_samples;             /* samples of all ranks in all updates so far */
    double seconds;               /* time of training */
    double test_seconds;          /* time of testing */
    report_times times;           /* times of this rank */
    const report_device *devices; /* [ranks] */
} report_epoch;

/** The passes of one update of a pipeline: their measured times, and the slots in which they end by
 *  the schedule if each pass takes one slot. */
typedef struct report_passes {
    long step; /* number of the update */
    int stages, micro_batches;
    const double *measured; /* [stages][micro_batches][4] begin and end of forward, then of
                               backward, in seconds since the first pass began */
    const int *predicted;   /* [stages][micro_batches][2] slots in which forward and backward end */
} report_passes;

typedef struct report_sink report_sink;

typedef struct train_report {
    report_run run;
    struct report_screen *screen; /* NULL: this rank does not report */
    report_sink *sinks;
} train_report;

/** Opens the reports. Close with report_close() whatever the result.
 *  @param on   whether this rank reports; true on rank 0
 *  @param run  copied, but its pointers are borrowed until report_close()
 *  @return RING_OK, RING_ERR_SYSTEM, RING_ERR_MEMORY. */
ring_status report_open(train_report *report, bool on, const report_run *run);
/** Closes the reports; further calls do nothing.
 *  @return RING_ERR_SYSTEM if a file could not be written completely. */
ring_status report_close(train_report *report);

/** These calls pass an event to all sinks. */
void report_start_run(train_report *report, const report_start *start);
void report_update(train_report *report, const report_step *step);
void report_end_epoch(train_report *report, const report_epoch *epoch);
void report_pipeline(train_report *report, const report_passes *passes);
/** @param devices  [ranks] */
void report_devices(train_report *report, long step, const report_device *devices);

/** Prints one line to standard output, after removing the progress bar from the terminal. */
void report_line(train_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Prints "ringtrain: text" to standard error in the same way, but on any rank. */
void report_error(train_report *report, const char *text);

#endif

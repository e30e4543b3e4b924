/* SPDX-License-Identifier: Apache-2.0
 *
 * report: lets rank 0 report a training run. It passes events (the start, an update, the use of
 * devices, the end of an epoch) to a list of sinks, each in its own source file: log lines, a
 * progress bar, metrics, DeepSpeed's monitors. On other ranks the calls do nothing.
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
    LOG_DEEPSPEED, /* as short, with DeepSpeed's line of throughput */
    LOG_NEOX,      /* as short, each line after "time [INFO] host: ", each share on its own line */
    LOG_BRIEF,     /* "Rank[0]: Epoch 1, step 20 / 469, loss 2.3026" */
    LOG_TORCH      /* "rank0, Epoch [1/6], Step [20/469], Loss: 2.3026" */
} log_style;

/** "short", …, ended by NULL. */
extern const char *const log_style_names[];

/** Reports chosen on the command line. A path that is NULL: not wanted. */
typedef struct report_options {
    const char *metrics_path;      /* JSON lines */
    bool append_metrics;           /* to a file that has content already */
    const char *epoch_losses_path; /* one JSON object, rewritten after every epoch */
    bool resumed;                  /* that object keeps the epochs before the run's first */
    log_style style;
} report_options;

/** The run, as it is known before there is a model. */
typedef struct report_run {
    const train_config *config;
    report_options options;
    int ranks;
    int epochs; /* of the whole run; set before report_start_run() */
    long steps_per_epoch;
    long steps; /* of the whole run; set before report_start_run() */
} report_run;

/** Bytes that one rank holds. */
typedef struct report_memory {
    uint64_t parameters, gradients, states;
    uint64_t live;        /* the buckets of ZeRO in use */
    uint64_t activations; /* with their gradients and the operators' buffers */
    uint64_t batch;       /* samples and labels */
} report_memory;

/** The operating system's figures of one rank's process. */
typedef struct report_device {
    double resident, peak; /* bytes */
    double cpu;            /* use of one core since the last report, such as 0.98 */
} report_device;

typedef struct report_start {
    const char *model, *loss, *maths; /* names */
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
    double lr;              /* used by this update */
    double next_lr;         /* after the scheduler's step */
    double next_other_lr;   /* of the second parameter group, if there is one */
    double next_betas[2];   /* of optimizers that have betas */
    long samples;           /* of all ranks */
    long all_samples;       /* of all ranks in all updates so far */
    long micro_batches;     /* of this rank */
    long all_micro_batches; /* of this rank in all updates so far */
    long skipped;           /* skipped updates so far */
    double loss_scale;      /* after this update; 0: the loss is not scaled */
    double seconds;
    report_times times; /* of this rank */
} report_step;

typedef struct report_epoch {
    long step;                    /* updates so far */
    int epoch;                    /* from 1 */
    double loss;                  /* mean over the samples of its updates */
    double accuracy, test_loss;   /* of the test set; NaN: it was not used */
    long samples;                 /* of all ranks */
    long all_samples;             /* of all ranks in all updates so far */
    double seconds;               /* of training */
    double test_seconds;          /* of testing */
    report_times times;           /* of this rank */
    const report_device *devices; /* [ranks] */
} report_epoch;

/** The passes of one update of a pipeline: their measured times, and the slots in which the
 *  schedule ends them if each pass takes one slot. */
typedef struct report_passes {
    long step; /* the update */
    int stages, micro_batches;
    const double *measured; /* [stages][micro_batches][4] begin and end of forward, then of
                               backward, in seconds since the first pass began */
    const int *predicted;   /* [stages][micro_batches][2] ends of forward and backward */
} report_passes;

typedef struct report_sink report_sink;

typedef struct train_report {
    report_run run;
    struct report_screen *screen; /* NULL: no output here */
    report_sink *sinks;
} train_report;

/** @param on   whether this rank reports, which rank 0 does
 *  @param run  copied; what it points to is borrowed until report_close().
 *  End with report_close() whatever the result.
 *  @return RING_OK, RING_ERR_SYSTEM, RING_ERR_MEMORY. */
ring_status report_open(train_report *report, bool on, const report_run *run);
/** May be called again. @return RING_ERR_SYSTEM if something could not be written completely. */
ring_status report_close(train_report *report);

void report_start_run(train_report *report, const report_start *start);
void report_update(train_report *report, const report_step *step);
void report_end_epoch(train_report *report, const report_epoch *epoch);
void report_pipeline(train_report *report, const report_passes *passes);
/** @param devices  [ranks] */
void report_devices(train_report *report, long step, const report_device *devices);

/** Prints one line to standard output, past the progress bar. */
void report_line(train_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Prints "ringtrain: text" to standard error, past the progress bar; on any rank. */
void report_error(train_report *report, const char *text);

#endif

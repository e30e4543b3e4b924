/* SPDX-License-Identifier: Apache-2.0
 *
 * report: what rank 0 tells while training: DeepSpeed's log lines, one JSON line an update,
 * a progress line on a terminal. On other ranks every call does nothing.
 */
#ifndef TRAIN_REPORT_H
#define TRAIN_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "config.h"

typedef struct train_report {
    bool on;                    /* rank 0 */
    bool progress;              /* standard error is a terminal */
    bool progress_shown;        /* and carries a line that has no end yet */
    const train_config *config; /* borrowed */
    const char *metrics_path;
    FILE *metrics;     /* NULL: not wanted */
    int metrics_error; /* errno of the first failed write, or 0 */
    long steps_per_epoch;
    int epochs;
    long micro_steps;                       /* so far */
    double interval_seconds, interval_loss; /* since the last log line */
    long interval_steps, interval_samples;
    double counted_seconds, counted_samples; /* since the first updates */
    double drawn_at;                         /* when the progress line was last drawn */
} train_report;

/** What one update was. */
typedef struct report_step {
    long step; /* from 1 */
    int epoch; /* from 1 */
    double loss, grad_norm;
    double lr;          /* used by this update */
    double next_lr;     /* after the scheduler's step */
    long samples;       /* of all ranks */
    long micro_batches; /* of this rank */
    long skipped;       /* updates so far */
    double seconds;
} report_step;

/** @param metrics_path  NULL: none. @return RING_OK, RING_ERR_SYSTEM. */
ring_status report_open(train_report *report, bool on, const train_config *config,
                        const char *metrics_path, int epochs, long steps_per_epoch);
/** @return RING_ERR_SYSTEM if the metrics could not be written completely. */
ring_status report_close(train_report *report);

void report_update(train_report *report, const report_step *step);

/** Prints one line to standard output, past the progress line. */
void report_line(train_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Prints "ringtrain: text" to standard error, past the progress line; on any rank. */
void report_error(train_report *report, const char *text);

#endif

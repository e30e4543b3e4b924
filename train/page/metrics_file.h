/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics_file: reads into tables the files that --metrics has written. A file has one run, or
 * several runs that were appended to each other.
 */
#ifndef TRAIN_METRICS_FILE_H
#define TRAIN_METRICS_FILE_H

#include <cjson/cJSON.h>
#include <ring/ring.h>
#include <stddef.h>

#include "breakdown.h"

enum { COLUMN_STEP, COLUMN_LOSS, COLUMN_LR, COLUMN_GRAD_NORM, COLUMN_RATE, STEP_COLUMNS };
enum { EPOCH_NUMBER, EPOCH_ACCURACY, EPOCH_TEST_LOSS, EPOCH_OVERLAP, EPOCH_MEMBERS };

/** Numbers from the lines of a file, each of which is a JSON object: one row for each line, and NAN
 *  where a line lacks the number. The first columns hold members of the object. The table of epochs
 *  has further columns for the parts of the member "seconds". */
typedef struct metrics_table {
    const char *const *members; /* [member_count] names of the first columns */
    int member_count, columns;
    double *list[EPOCH_MEMBERS + PARTS]; /* [columns][count] */
    size_t count, room;
} metrics_table;

typedef struct metrics_run {
    cJSON *facts;         /* "name": path of the file; "run"; the latest "devices" and "pipeline" */
    metrics_table steps;  /* one row for each update; columns COLUMN_STEP, … */
    metrics_table epochs; /* one row for each epoch; columns EPOCH_NUMBER, …, and parts */
} metrics_run;

typedef struct metrics_runs {
    metrics_run *list; /* [count] */
    size_t count;
} metrics_runs;

/** Adds the runs of @p path, which is a file, or a folder with the file metrics.jsonl. Ignores an
 *  unfinished last line.
 *  @return RING_OK, RING_ERR_SYSTEM, RING_ERR_MEMORY, RING_ERR_CONFIG (a line, which the message
 *  names, is not metrics). Free with metrics_runs_free() whatever the result. */
ring_status metrics_runs_read(metrics_runs *runs, const char *path);
void metrics_runs_free(metrics_runs *runs);

/** @return the name of a column, such as "loss" or "forward". */
const char *metrics_column_name(const metrics_table *table, int column);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics_file: what --metrics has written, in columns. A file holds a run, or several one behind
 * the other.
 */
#ifndef TRAIN_METRICS_FILE_H
#define TRAIN_METRICS_FILE_H

#include <cjson/cJSON.h>
#include <ring/ring.h>
#include <stddef.h>

#include "breakdown.h"

typedef enum metrics_column {
    COLUMN_STEP,
    COLUMN_LOSS,
    COLUMN_LR,
    COLUMN_GRAD_NORM,
    COLUMN_RATE, /* samples a second */
    COLUMNS
} metrics_column;

typedef enum epoch_column {
    EPOCH_NUMBER,
    EPOCH_STEP, /* the last */
    EPOCH_LOSS,
    EPOCH_ACCURACY,
    EPOCH_TEST_LOSS,
    EPOCH_RATE,
    EPOCH_OVERLAP, /* -1: none */
    EPOCH_PARTS,   /* PARTS of them, in seconds */
    EPOCH_COLUMNS = EPOCH_PARTS + PARTS
} epoch_column;

/** Rows of numbers, by column. */
typedef struct metrics_table {
    int columns;
    double *list[EPOCH_COLUMNS]; /* [columns][count] */
    size_t count, room;
} metrics_table;

typedef struct metrics_run {
    char name[256];       /* where it is from */
    cJSON *about;         /* the object "run"; NULL: the file has none */
    cJSON *devices;       /* the latest list; NULL: none */
    cJSON *pipeline;      /* the latest object "pipeline"; NULL: none */
    metrics_table steps;  /* by metrics_column */
    metrics_table epochs; /* by epoch_column */
} metrics_run;

typedef struct metrics_runs {
    metrics_run *list; /* [count] */
    size_t count;
} metrics_runs;

/** Adds the runs of @p path: a file, or a folder with a metrics.jsonl. A last line that was not
 *  finished is left out.
 *  @return RING_OK, RING_ERR_SYSTEM, RING_ERR_MEMORY, RING_ERR_CONFIG (no metrics; says which
 * line). Free with metrics_runs_free() whatever the result. */
ring_status metrics_runs_read(metrics_runs *runs, const char *path);
void metrics_runs_free(metrics_runs *runs);

/** @return the text or number of @p about's member, as text; "" if there is none. */
const char *metrics_text(const metrics_run *run, const char *member, char text[64]);

#endif

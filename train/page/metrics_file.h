/* SPDX-License-Identifier: Apache-2.0
 *
 * metrics_file: reads files that --metrics has written into tables. A file holds one run, or
 * several that were appended to each other.
 */
#ifndef TRAIN_METRICS_FILE_H
#define TRAIN_METRICS_FILE_H

#include <cjson/cJSON.h>
#include <ring/ring.h>
#include <stddef.h>

#include "breakdown.h"

enum { COLUMN_STEP, COLUMN_LOSS, COLUMN_LR, COLUMN_GRAD_NORM, COLUMN_RATE, STEP_COLUMNS };
enum { EPOCH_NUMBER, EPOCH_ACCURACY, EPOCH_TEST_LOSS, EPOCH_OVERLAP, EPOCH_MEMBERS };

/** The numbers of lines, by column; NAN if a line lacks the number. The columns for members of a
 *  line may be followed by one for each part of its "seconds". */
typedef struct metrics_table {
    const char *const *members; /* [member_count] */
    int member_count, columns;
    double *list[EPOCH_MEMBERS + PARTS]; /* [columns][count] */
    size_t count, room;
} metrics_table;

typedef struct metrics_run {
    cJSON *facts;         /* "name": its path; the latest "run", "devices", "pipeline" */
    metrics_table steps;  /* of updates; COLUMN_STEP, … */
    metrics_table epochs; /* EPOCH_NUMBER, …, and parts */
} metrics_run;

typedef struct metrics_runs {
    metrics_run *list; /* [count] */
    size_t count;
} metrics_runs;

/** Adds the runs of @p path: a file, or a folder with a metrics.jsonl. An unfinished last line is
 *  left out.
 *  @return RING_OK, RING_ERR_SYSTEM, RING_ERR_MEMORY, RING_ERR_CONFIG (not metrics; the message
 *  names the line). Free with metrics_runs_free() whatever the result. */
ring_status metrics_runs_read(metrics_runs *runs, const char *path);
void metrics_runs_free(metrics_runs *runs);

/** @return "loss", "forward", … */
const char *metrics_column_name(const metrics_table *table, int column);

#endif

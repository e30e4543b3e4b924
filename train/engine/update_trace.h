/* SPDX-License-Identifier: Apache-2.0
 *
 * update_trace: writes a rank's instructions over time in Chrome's trace format, which
 * chrome://tracing and Perfetto display: computation on one track and communication on another.
 * Each rank appears as a process, and all ranks share one file.
 */
#ifndef TRAIN_UPDATE_TRACE_H
#define TRAIN_UPDATE_TRACE_H

#include <stdio.h>

#include "update_schedule.h"

typedef struct update_trace {
    FILE *out;
    double start; /* train_now() at time 0 of the trace */
    int rank;
    long update; /* number of the current update; the caller sets it */
} update_trace;

/** Begins the events of a rank. Rank 0 begins the file; the other ranks append to the events of
 *  the ranks before them.
 *  @param out  borrowed; the caller checks it for errors and closes it
 *  @param start  train_now() at time 0 of the trace */
void update_trace_begin(update_trace *trace, FILE *out, int rank, double start);

/** Writes the end of the file, after the events of all ranks. */
void update_trace_end(FILE *out);

/** Writes that instruction @p at occupied the rank from @p begin to @p end.
 *  @param trace  NULL: nothing is written
 *  @param before  prefix of the instruction's name: "wait for " or "" */
void update_trace_span(update_trace *trace, const char *before, const update_instruction *at,
                       double begin, double end);

/** Writes that the call of @p at, instruction @p number of the list, began or ended at time @p
 * when.
 *  @param trace  NULL: nothing is written */
void update_trace_wire(update_trace *trace, const update_instruction *at, int number, bool begins,
                       double when);

#endif

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
    double start; /* train_now() of the trace's zero */
    int rank;
    long update; /* the current one */
} update_trace;

/** Begins the events of a rank: rank 0 begins the file, and others append to the events of earlier
 *  ranks.
 *  @param out remains the caller's, who also checks it for errors. @param start train_now() of the
 *  trace's zero. */
void update_trace_begin(update_trace *trace, FILE *out, int rank, double start);
/** Writes the end of a file. */
void update_trace_end(FILE *out);

/** The following functions do nothing if @p trace is NULL. */
/** @param before a prefix of the instruction's name: "wait for ". */
void update_trace_span(update_trace *trace, const char *before, const update_instruction *at,
                       double begin, double end);
void update_trace_wire(update_trace *trace, const update_instruction *at, int number, bool begins,
                       double when);

#endif

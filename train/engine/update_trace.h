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
    long update; /* that runs */
} update_trace;

/** Writes the beginning: that of the file if @p rank is 0, else of what goes on behind another
 *  rank's events.
 *  @param out  stays the caller's, errors too. @param start  train_now() of the trace's zero. */
void update_trace_begin(update_trace *trace, FILE *out, int rank, double start);
/** Writes the end of a file. */
void update_trace_end(FILE *out);

/** The next functions do nothing for NULL. */
/** @param before  stands before the instruction's name: "wait for ". */
void update_trace_span(update_trace *trace, const char *before, const update_instruction *at,
                       double begin, double end);
void update_trace_wire(update_trace *trace, const update_instruction *at, int number, bool begins,
                       double when);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * step_trace: instructions of one rank over time, in Chrome's trace format, which chrome://tracing
 * and Perfetto show: what the rank does, and what goes over the wire meanwhile.
 */
#ifndef TRAIN_STEP_TRACE_H
#define TRAIN_STEP_TRACE_H

#include <stdio.h>

#include "step_schedule.h"

typedef struct step_trace {
    FILE *out;
    double start; /* train_now() of the trace's zero */
    int rank;
    long update; /* that runs */
} step_trace;

/** Writes the beginning. @param out  stays the caller's, errors too. */
void step_trace_begin(step_trace *trace, FILE *out, int rank);
/** Writes the end. */
void step_trace_end(step_trace *trace);

/** The next functions do nothing for NULL. */
/** @param before  stands before the instruction's name: "wait for ". */
void step_trace_span(step_trace *trace, const char *before, const step_instruction *at,
                     double begin, double end);
void step_trace_wire(step_trace *trace, const step_instruction *at, int number, bool begins,
                     double when);

#endif

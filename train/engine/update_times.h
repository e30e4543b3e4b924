/* SPDX-License-Identifier: Apache-2.0
 *
 * update_times: sums up how long instructions took, as update_run() reports them, and passes them
 * on to the trace and to pass_times.
 */
#ifndef TRAIN_UPDATE_TIMES_H
#define TRAIN_UPDATE_TIMES_H

#include "pass_times.h"
#include "update_schedule.h"
#include "update_trace.h"

/** Seconds so far. */
typedef struct update_times {
    double busy[UPDATE_KINDS];   /* computing; for communication: starting it, and progressing it
                                    between computations */
    double waited[UPDATE_KINDS]; /* waiting for communication with nothing else to do */
    double ties;                 /* of busy[UPDATE_REDUCE]: BUCKET_TIES */
    double checking;       /* part of busy[UPDATE_CLIP]: deciding whether to skip the update */
    double reducing;       /* while gradients were being reduced, overlapped or not */
    int reductions;        /* in flight now */
    double reducing_since; /* train_now() when the first of them began */
    update_trace *trace;   /* borrowed; NULL: no trace is written */
    pass_times *passes;    /* borrowed; NULL: not recorded */
} update_times;

/** Records that an instruction ran or, for communication, was started. Times are of train_now(). */
void update_times_ran(update_times *times, const update_instruction *at, double begin, double end);
/** Records that communication was progressed between computations, on behalf of @p at. */
void update_times_moved(update_times *times, const update_instruction *at, double begin,
                        double end);
void update_times_waited(update_times *times, const update_instruction *at, double begin,
                         double end);

/** Records that the communication of instruction @p number started, or was found complete, at @p
 *  when. */
void update_times_started(update_times *times, const update_instruction *at, int number,
                          double when);
void update_times_ended(update_times *times, const update_instruction *at, int number, double when);

#endif

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
    double busy[UPDATE_KINDS]; /* computing; of what goes over the wire: starting it, and moving it
                                between computations */
    double waited[UPDATE_KINDS]; /* until one of the wire had ended, with nothing else to do */
    double ties;                 /* of busy[UPDATE_REDUCE]: BUCKET_TIES */
    double checking;             /* of busy[UPDATE_CLIP]: whether an update is to be left out */
    double reducing;             /* while gradients were reduced, whatever was done meanwhile */
    int reductions;              /* that run now */
    double reducing_since;       /* train_now() when the first of them began */
    update_trace *trace;         /* borrowed; NULL: none is written */
    pass_times *passes;          /* borrowed; NULL: they are not kept */
} update_times;

/** An instruction ran, or was started. Times are of train_now(). */
void update_times_ran(update_times *times, const update_instruction *at, double begin, double end);
/** The wire was moved between computations, for the sake of @p at. */
void update_times_moved(update_times *times, const update_instruction *at, double begin,
                        double end);
void update_times_waited(update_times *times, const update_instruction *at, double begin,
                         double end);

/** Instruction @p number goes over the wire from @p when on, or has been seen to have ended. */
void update_times_started(update_times *times, const update_instruction *at, int number,
                          double when);
void update_times_ended(update_times *times, const update_instruction *at, int number, double when);

#endif

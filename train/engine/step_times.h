/* SPDX-License-Identifier: Apache-2.0
 *
 * step_times: durations of instructions, reported by step_run().
 */
#ifndef TRAIN_STEP_TIMES_H
#define TRAIN_STEP_TIMES_H

#include "pass_times.h"
#include "step_schedule.h"
#include "step_trace.h"

/** Seconds so far. */
typedef struct step_times {
    double busy[STEP_KINDS];   /* computing; of what goes over the wire: starting it, and moving it
                                  between computations */
    double waited[STEP_KINDS]; /* until one of the wire had ended, with nothing else to do */
    double ties;               /* of busy[STEP_REDUCE]: BUCKET_TIES */
    double checking;           /* of busy[STEP_CLIP]: whether an update is to be left out */
    double reducing;           /* while gradients were reduced, whatever was done meanwhile */
    int reductions;            /* that run now */
    double reducing_since;     /* train_now() when the first of them began */
    step_trace *trace;         /* borrowed; NULL: none is written */
    pass_times *passes;        /* borrowed; NULL: they are not kept */
} step_times;

/** An instruction ran, or was started. Times are of train_now(). */
void step_times_ran(step_times *times, const step_instruction *at, double begin, double end);
/** The wire was moved between computations, for the sake of @p at. */
void step_times_moved(step_times *times, const step_instruction *at, double begin, double end);
void step_times_waited(step_times *times, const step_instruction *at, double begin, double end);

/** Instruction @p number goes over the wire from @p when on, or has been seen to have ended. */
void step_times_left(step_times *times, const step_instruction *at, int number, double when);
void step_times_arrived(step_times *times, const step_instruction *at, int number, double when);

#endif

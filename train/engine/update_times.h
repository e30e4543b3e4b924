/* SPDX-License-Identifier: Apache-2.0
 *
 * update_times: adds up how long instructions took, for update_run(), and passes each duration on
 * to the trace and to pass_times.
 */
#ifndef TRAIN_UPDATE_TIMES_H
#define TRAIN_UPDATE_TIMES_H

#include "pass_times.h"
#include "update_schedule.h"
#include "update_trace.h"

/** Total seconds of all updates so far. */
typedef struct update_times {
    double busy[UPDATE_KINDS]; /* spent in instructions of this kind: computing; or starting calls,
                                  and progressing them between computations */
    double waited[UPDATE_KINDS]; /* spent blocked until calls of this kind had ended */
    double ties;                 /* the part of busy[UPDATE_REDUCE] for BUCKET_TIES */
    double checking; /* the part of busy[UPDATE_CLIP] for deciding whether to skip the update */
    double reducing; /* during which at least one reduction of gradients was in flight */
    int reductions;  /* reductions of gradients in flight now */
    double reducing_since; /* train_now() when reductions last rose from 0 to 1 */
    update_trace *trace;   /* borrowed; NULL: no trace is written */
    pass_times *passes;    /* borrowed; NULL: not recorded */
} update_times;

/** Records that an instruction ran or, for communication, was started. All times are train_now().
 */
void update_times_ran(update_times *times, const update_instruction *at, double begin, double end);

/** Records that the call of @p at was progressed between computations. */
void update_times_moved(update_times *times, const update_instruction *at, double begin,
                        double end);

/** Records that the rank waited for the call of @p at to end. */
void update_times_waited(update_times *times, const update_instruction *at, double begin,
                         double end);

/** Record that the call of @p at, instruction @p number of the list, was started or was found
 *  complete at time @p when. */
void update_times_started(update_times *times, const update_instruction *at, int number,
                          double when);
void update_times_ended(update_times *times, const update_instruction *at, int number, double when);

#endif

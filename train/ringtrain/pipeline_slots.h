/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline_slots: records when the passes of one update ran on each stage of a pipeline, so that a
 * report can compare them with the schedule. Without a pipeline it does nothing.
 */
#ifndef TRAIN_PIPELINE_SLOTS_H
#define TRAIN_PIPELINE_SLOTS_H

#include "report.h"
#include "train_engine.h"

typedef struct pipeline_slots {
    pass_times passes; /* of this rank, in the latest of the updates with the most micro-batches */
    long step;         /* number of that update; 0: no update yet */
    double *measured;  /* see report_passes, as for predicted */
    int *predicted;
} pipeline_slots;

/** Free with pipeline_slots_free() whatever the result. */
ring_status pipeline_slots_create(pipeline_slots *slots, const train_config *config);
void pipeline_slots_free(pipeline_slots *slots);

/** @return where to record the passes of update @p step; NULL: do not record this update. */
pass_times *pipeline_slots_next(pipeline_slots *slots, long step, int micro_batches);

/** Collective over the stages: reports the update that was recorded last, if there is one. */
ring_status pipeline_slots_report(pipeline_slots *slots, const train_pipeline *pipeline,
                                  train_report *report);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline_slots: records the passes of one update on all stages of a pipeline, so that they can be
 * compared with the schedule. Does nothing without a pipeline.
 */
#ifndef TRAIN_PIPELINE_SLOTS_H
#define TRAIN_PIPELINE_SLOTS_H

#include "report.h"
#include "train_engine.h"

typedef struct pipeline_slots {
    pass_times passes; /* of this rank, in the latest update with the most micro-batches */
    long step;         /* that update; 0: not yet known */
    double *measured;  /* as in report_passes */
    int *predicted;
} pipeline_slots;

/** Free with pipeline_slots_free() whatever the result. */
ring_status pipeline_slots_create(pipeline_slots *slots, const train_config *config);
void pipeline_slots_free(pipeline_slots *slots);

/** @return where to record the passes of update @p step; NULL: this update is not reported. */
pass_times *pipeline_slots_next(pipeline_slots *slots, long step, int micro_batches);

/** Collective over the stages: reports the recorded update, if there is one. */
ring_status pipeline_slots_report(pipeline_slots *slots, const train_pipeline *pipeline,
                                  train_report *report);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * pipeline_slots: the passes of one update on all stages of a pipeline, to be shown beside those of
 * the schedule. Nothing without a pipeline.
 */
#ifndef TRAIN_PIPELINE_SLOTS_H
#define TRAIN_PIPELINE_SLOTS_H

#include "report.h"
#include "train_engine.h"

typedef struct pipeline_slots {
    pass_times passes; /* of this rank, in the latest update with most micro-batches */
    long step;         /* that update; 0: none yet */
    double *measured;  /* as in report_passes */
    int *predicted;
} pipeline_slots;

/** Free with pipeline_slots_free() whatever the result. */
ring_status pipeline_slots_create(pipeline_slots *slots, const train_config *config);
void pipeline_slots_free(pipeline_slots *slots);

/** @return where to keep the passes of update @p step; NULL: it is not shown. */
pass_times *pipeline_slots_next(pipeline_slots *slots, long step, int micro_batches);

/** Collective over the stages: tells the update, if there is one. */
ring_status pipeline_slots_tell(pipeline_slots *slots, const train_pipeline *pipeline,
                                train_report *report);

#endif

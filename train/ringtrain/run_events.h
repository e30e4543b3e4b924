/* SPDX-License-Identifier: Apache-2.0
 *
 * run_events: what the engine and all ranks know of a run, in the form in which rank 0 reports it.
 */
#ifndef TRAIN_RUN_EVENTS_H
#define TRAIN_RUN_EVENTS_H

#include "device_use.h"
#include "pipeline_slots.h"
#include "report.h"
#include "run_trace.h"
#include "train_engine.h"

/** Reports that no sink asks for. */
typedef struct events_options {
    const char *trace_path; /* of all ranks' instructions in the first updates; NULL: none */
    long monitor_every;     /* updates between two looks at the devices; 0: none */
} events_options;

typedef struct run_events {
    ring_comm *comm;      /* borrowed */
    train_engine *engine; /* borrowed; NULL before events_start() */
    events_options options;
    train_report report;
    report_memory *memory;  /* [ranks] */
    report_device *devices; /* [ranks] */
    device_clock monitor_clock, epoch_clock;
    update_times before; /* at the beginning of the update */
    report_epoch epoch;  /* sums so far */
    long all_samples;    /* of all updates so far */
    pipeline_slots slots;
    run_trace trace;
} run_events;

/** Paths that cannot be written are known here. End with events_close() whatever the result. */
ring_status events_open(run_events *events, ring_comm *comm, const report_run *run,
                        const events_options *options);
/** @return RING_ERR_SYSTEM if something could not be written completely. */
ring_status events_close(run_events *events);

/** Collective, as events_end_update() and events_end_epoch(). @param start  all but its memory. */
ring_status events_start(run_events *events, train_engine *engine, report_start *start);

/** Collective: writes the final reports, after the last update. */
ring_status events_finish(run_events *events);

/** @param micro_batches  of the update. */
void events_begin_update(run_events *events, long step, int micro_batches);
/** @param step  all but its all_samples and times. */
ring_status events_end_update(run_events *events, report_step *step);
/** @param epoch  number, updates so far, test set and seconds; the rest is filled in. */
ring_status events_end_epoch(run_events *events, report_epoch *epoch);

/** @return where @p seconds of updates went: what @p after has more than @p before. */
report_times events_times(const update_times *before, const update_times *after, double seconds);

#endif

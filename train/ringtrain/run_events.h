/* SPDX-License-Identifier: Apache-2.0
 *
 * run_events: collects the times and the use of memory and devices of all ranks during a run, and
 * passes them to the reports of rank 0.
 */
#ifndef TRAIN_RUN_EVENTS_H
#define TRAIN_RUN_EVENTS_H

#include "device_use.h"
#include "pipeline_slots.h"
#include "report.h"
#include "run_trace.h"
#include "train_engine.h"

/** Options of the reports that run_events writes itself. */
typedef struct events_options {
    const char *trace_path; /* file for the trace of the first updates; NULL: no trace */
    long monitor_every;     /* updates between two reports of devices; 0: never */
} events_options;

typedef struct run_events {
    ring_comm *comm;      /* borrowed */
    train_engine *engine; /* borrowed; NULL before events_start() */
    events_options options;
    train_report report;
    report_memory *memory;  /* [ranks] */
    report_device *devices; /* [ranks] */
    device_clock monitor_clock, epoch_clock;
    update_times before; /* the engine's times at the beginning of the update */
    report_epoch epoch;  /* sums over the updates of this epoch so far */
    long all_samples;    /* samples of all updates of the run so far */
    pipeline_slots slots;
    run_trace trace;
} run_events;

/** Opens the reports' files; fails if a file cannot be written. Close with events_close() whatever
 *  the result. */
ring_status events_open(run_events *events, ring_comm *comm, const report_run *run,
                        const events_options *options);
/** @return RING_ERR_SYSTEM if a file could not be written completely. */
ring_status events_close(run_events *events);

/** Collective, like events_end_update() and events_end_epoch(). @param start  has all members
 * except memory, which is filled in here. */
ring_status events_start(run_events *events, train_engine *engine, report_start *start);

/** Collective: writes the final reports, after the last update. */
ring_status events_finish(run_events *events);

/** @param micro_batches  micro-batches of update @p step on this rank. */
void events_begin_update(run_events *events, long step, int micro_batches);
/** @param step  has all members except all_samples and times, which are filled in here. */
ring_status events_end_update(run_events *events, report_step *step);
/** @param epoch  has the members about its number, updates, test set and seconds; the others are
 *  filled in here. */
ring_status events_end_epoch(run_events *events, report_epoch *epoch);

/** @return how @p seconds between the times @p before and @p after were spent. */
report_times events_times(const update_times *before, const update_times *after, double seconds);

#endif

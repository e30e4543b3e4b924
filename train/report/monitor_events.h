/* SPDX-License-Identifier: Apache-2.0
 *
 * monitor_events: turns an update or an epoch into the events that DeepSpeed sends to its monitors:
 * named numbers, plotted over the samples seen so far.
 */
#ifndef TRAIN_MONITOR_EVENTS_H
#define TRAIN_MONITOR_EVENTS_H

#include "report.h"

enum { MONITOR_EVENTS_MAX = 8, MONITOR_NAMES = 10 };

typedef struct monitor_event {
    const char *name; /* "Train/Samples/lr" */
    int number;       /* of the name, below MONITOR_NAMES */
    double value;
} monitor_event;

/** @return the number of events written. */
int monitor_of_step(const report_run *run, const report_step *step,
                    monitor_event events[MONITOR_EVENTS_MAX]);
int monitor_of_epoch(const report_epoch *epoch, monitor_event events[MONITOR_EVENTS_MAX]);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * monitor_events: converts the results of an update or an epoch to the events that DeepSpeed sends
 * to its monitors. An event is a named number, which monitors plot over the samples trained so far.
 */
#ifndef TRAIN_MONITOR_EVENTS_H
#define TRAIN_MONITOR_EVENTS_H

#include "report.h"

enum { MONITOR_EVENTS_MAX = 8, MONITOR_NAMES = 10 };

typedef struct monitor_event {
    const char *name; /* such as "Train/Samples/lr" */
    int number;       /* number of the name, below MONITOR_NAMES */
    double value;
} monitor_event;

/** @return the number of events that were written to @p events. */
int monitor_of_step(const report_run *run, const report_step *step,
                    monitor_event events[MONITOR_EVENTS_MAX]);
int monitor_of_epoch(const report_epoch *epoch, monitor_event events[MONITOR_EVENTS_MAX]);

#endif

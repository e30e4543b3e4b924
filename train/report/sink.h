/* SPDX-License-Identifier: Apache-2.0
 *
 * sink: defines the interface of a sink, which is one destination of events. A kind of sink is a
 * struct of functions, which share a state. To add a kind, write a file with its struct and add the
 * struct to the table in report.c.
 */
#ifndef TRAIN_SINK_H
#define TRAIN_SINK_H

#include "report.h"
#include "screen.h"

typedef struct sink_kind {
    /** Sets sink->state if the run uses this sink. A path that cannot be written fails here, before
     *  hours of training. @return RING_OK, RING_ERR_SYSTEM, RING_ERR_MEMORY. */
    ring_status (*open)(report_sink *sink);
    /** Releases the resources of the state; report_close() frees the state itself. May be NULL.
     *  @return RING_ERR_SYSTEM if a file could not be written completely. */
    ring_status (*close)(report_sink *sink);
    /** Functions for events. Each may be NULL. They are called only if sink->state is not NULL. */
    void (*start)(report_sink *sink, const report_start *start);
    void (*update)(report_sink *sink, const report_step *step);
    void (*passes)(report_sink *sink, const report_passes *passes);
    void (*devices)(report_sink *sink, long step, const report_device *devices);
    void (*epoch)(report_sink *sink, const report_epoch *epoch);
} sink_kind;

struct report_sink {
    const sink_kind *kind;
    const report_run *run; /* borrowed */
    report_screen *screen; /* borrowed */
    void *state;           /* NULL: the run does not use this sink */
};

extern const sink_kind log_lines, progress_bar, metrics_lines, epoch_losses, csv_monitor,
    tensorboard_events, wandb_lines;

/** Sets sink->state to @p bytes of zeroes. @return the state, or NULL with a train_error(). */
void *sink_create_state(report_sink *sink, size_t bytes);

#endif

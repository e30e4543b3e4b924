/* SPDX-License-Identifier: Apache-2.0
 *
 * sink: one place where events go. A kind of sink is a struct of functions; what it keeps is its
 * own state. To add one: a file with its struct, and a line in the table of report.c.
 */
#ifndef TRAIN_SINK_H
#define TRAIN_SINK_H

#include "report.h"
#include "screen.h"

typedef struct sink_kind {
    /** Sets sink->state if the run wants this sink; paths that cannot be written fail here, before
     *  hours of training. @return RING_OK, RING_ERR_SYSTEM, RING_ERR_MEMORY. */
    ring_status (*open)(report_sink *sink);
    /** Gives the state back. @return RING_ERR_SYSTEM if something is not written completely. */
    ring_status (*close)(report_sink *sink);
    /** Each may be NULL; none is called without a state. */
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
    void *state;           /* NULL: not wanted */
};

extern const sink_kind log_lines, progress_bar, metrics_lines, epoch_losses, csv_monitor,
    tensorboard_events, wandb_lines;

/** Sets sink->state to @p bytes of zeroes. @return them, or NULL with a train_error(). */
void *sink_create_state(report_sink *sink, size_t bytes);

#endif

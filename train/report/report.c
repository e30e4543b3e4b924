/* SPDX-License-Identifier: Apache-2.0
 * Holds the list of all kinds of sinks, and passes each event to the sinks that the run uses. */
#include "report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "errors.h"
#include "sink.h"

static const sink_kind *const kinds[] = {&log_lines,   &metrics_lines,      &epoch_losses,
                                         &csv_monitor, &tensorboard_events, &wandb_lines,
                                         &progress_bar /* last: it is drawn after log lines */};

enum { KINDS = sizeof kinds / sizeof *kinds };

/* Calls each sink that the run uses and that has a function for this event. */
#define CALL_SINKS(report, event, ...) \
    for (report_sink *sink = (report)->sinks; sink != NULL && sink < (report)->sinks + KINDS; \
         sink++) { \
        if (sink->state != NULL && sink->kind->event != NULL) \
            sink->kind->event(sink, __VA_ARGS__); \
    }

void *sink_create_state(report_sink *sink, size_t bytes)
{
    train_alloc(&sink->state, bytes, "a report");
    return sink->state;
}

void screen_clear_bar(report_screen *screen)
{
    if (screen != NULL && screen->bar_shown)
        fputs("\r\033[K", stderr);
    if (screen != NULL)
        screen->bar_shown = false;
}

static ring_status open_sinks(train_report *report)
{
    RING_TRY(train_alloc((void **)&report->screen, sizeof *report->screen, "a report"));
    RING_TRY(train_alloc((void **)&report->sinks, KINDS * sizeof *report->sinks, "a report"));
    for (int i = 0; i < KINDS; i++)
        report->sinks[i] = (report_sink){kinds[i], &report->run, report->screen, NULL};
    for (int i = 0; i < KINDS; i++)
        RING_TRY(kinds[i]->open(&report->sinks[i]));
    return RING_OK;
}

ring_status report_open(train_report *report, bool on, const report_run *run)
{
    *report = (train_report){.run = *run};
    return on ? open_sinks(report) : RING_OK;
}

/* Reports the first failure only, because the later ones usually concern the same disk. */
ring_status report_close(train_report *report)
{
    ring_status first = RING_OK;
    screen_clear_bar(report->screen);
    for (int i = 0; i < KINDS && report->sinks != NULL; i++) {
        report_sink *sink = &report->sinks[i];
        const bool closes = sink->state != NULL && sink->kind->close != NULL;
        const ring_status status = closes ? sink->kind->close(sink) : RING_OK;
        if (first == RING_OK)
            first = status;
        free(sink->state);
    }
    free(report->sinks);
    free(report->screen);
    report->sinks = NULL;
    report->screen = NULL;
    return first;
}

void report_start_run(train_report *report, const report_start *start)
{
    CALL_SINKS(report, start, start)
}

void report_update(train_report *report, const report_step *step)
{
    CALL_SINKS(report, update, step)
}

void report_end_epoch(train_report *report, const report_epoch *epoch)
{
    CALL_SINKS(report, epoch, epoch)
}

void report_pipeline(train_report *report, const report_passes *passes)
{
    CALL_SINKS(report, passes, passes)
}

void report_devices(train_report *report, long step, const report_device *devices)
{
    CALL_SINKS(report, devices, step, devices)
}

void report_line(train_report *report, const char *format, ...)
{
    if (report->screen == NULL)
        return;
    screen_clear_bar(report->screen);
    va_list args;
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    fflush(stdout);
}

void report_error(train_report *report, const char *text)
{
    screen_clear_bar(report->screen);
    fprintf(stderr, "ringtrain: %s\n", text);
}

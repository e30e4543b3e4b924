/* SPDX-License-Identifier: Apache-2.0
 *
 * progress_bar: draws the progress of the run on standard error if that is a terminal, and
 * otherwise draws nothing.
 */
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "clock.h"
#include "sink.h"

/* The least time between two drawings, in seconds. */
#define DRAW_SECONDS 0.1
enum { BAR_CELLS = 20, LINE_MAX_BYTES = 256, COLUMNS_UNKNOWN = 80 };

typedef struct bar_state {
    double began, drawn_at; /* times of train_now() */
    long first;             /* updates that earlier starts of the run made */
} bar_state;

static ring_status open_bar(report_sink *sink)
{
    if (!isatty(STDERR_FILENO))
        return RING_OK;
    return sink_create_state(sink, sizeof(bar_state)) != NULL ? RING_OK : RING_ERR_MEMORY;
}

/* Writes "1:02:03", or "2:03" for less than an hour. @return text. */
static const char *time_text(double seconds, char text[32])
{
    const long whole = (long)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, 32, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    else
        snprintf(text, 32, "%ld:%02ld", whole / 60, whole % 60);
    return text;
}

static void draw(report_sink *sink, const report_step *step)
{
    static const char full[] = "####################", empty[] = "....................";
    const report_run *run = sink->run;
    const bar_state *bar = sink->state;
    const double done = (double)(step->step - bar->first);
    const double seconds_left = (train_now() - bar->began) / done *
                                (double)(run->steps - step->step);
    const int cells = (int)(step->step * BAR_CELLS / run->steps);
    char line[LINE_MAX_BYTES], left[32];
    snprintf(line, sizeof line,
             "[%.*s%.*s] epoch %d/%d  update %ld/%ld  loss %.4f  lr %.3g  %.0f samples/s  %s left",
             cells, full, BAR_CELLS - cells, empty, step->epoch, run->epochs, step->epoch_step,
             run->steps_per_epoch, step->loss, step->lr, (double)step->samples / step->seconds,
             time_text(seconds_left, left));
    struct winsize size;
    const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    fprintf(stderr, "\r%.*s\033[K", (known ? size.ws_col : COLUMNS_UNKNOWN) - 1, line);
}

static void update_bar(report_sink *sink, const report_step *step)
{
    bar_state *bar = sink->state;
    const double now = train_now();
    if (bar->began == 0.0) {
        bar->began = now - step->seconds;
        bar->first = step->step - 1;
    }
    if (now - bar->drawn_at < DRAW_SECONDS)
        return;
    bar->drawn_at = now;
    sink->screen->bar_shown = true;
    draw(sink, step);
}

const sink_kind progress_bar = {.open = open_bar, .update = update_bar};

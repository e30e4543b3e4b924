/* SPDX-License-Identifier: Apache-2.0
 *
 * wandb_lines: writes the events that DeepSpeed sends to Weights & Biases to a file, which can be
 * imported later. Nothing is sent over the network.
 */
#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "errors.h"
#include "monitor_events.h"
#include "sink.h"
#include "sink_file.h"

static void print_name(sink_file *file, const char *key, const char *value)
{
    if (*value == '\0')
        return;
    sink_file_print(file, ", \"%s\": ", key);
    sink_file_quote(file, value);
}

static ring_status open_wandb(report_sink *sink)
{
    const wandb_config *config = &sink->run->config->wandb;
    char folder[OUTPUT_PATH_MAX], path[2 * OUTPUT_PATH_MAX], date[32];
    const time_t now = time(NULL);
    struct tm local;
    if (!config->enabled)
        return RING_OK;
    sink_file *file = sink_create_state(sink, sizeof *file);
    if (file == NULL)
        return RING_ERR_MEMORY;
    RING_TRY(sink_folder_create("wandb", "wandb", config->project, folder));
    strftime(date, sizeof date, "%Y%m%d_%H%M%S", localtime_r(&now, &local));
    snprintf(path, sizeof path, "%s/run-%s-%ld.jsonl", folder, date, (long)getpid());
    RING_TRY(sink_file_open(file, "wandb", path, false));
    sink_file_print(file, "{\"project\": ");
    sink_file_quote(file, config->project);
    print_name(file, "entity", config->team);
    print_name(file, "group", config->group);
    sink_file_print(file, "}\n");
    printf("NOTE wandb: events are written to %s, not sent over the network; the guide of "
           "ringtrain has the command that imports them\n",
           path);
    return RING_OK;
}

static ring_status close_wandb(report_sink *sink)
{
    return sink_file_close(sink->state);
}

/* Writes the events of one point in time on one line. Leaves out NaN, which JSON does not have. */
static void write_events(sink_file *file, const monitor_event *events, int count, long samples)
{
    sink_file_print(file, "{\"_step\": %ld", samples);
    for (int i = 0; i < count; i++) {
        if (isfinite(events[i].value))
            sink_file_print(file, ", \"%s\": %.17g", events[i].name, events[i].value);
    }
    sink_file_print(file, "}\n");
}

static void update_wandb(report_sink *sink, const report_step *step)
{
    monitor_event events[MONITOR_EVENTS_MAX];
    write_events(sink->state, events, monitor_of_step(sink->run, step, events), step->all_samples);
}

static void epoch_wandb(report_sink *sink, const report_epoch *epoch)
{
    monitor_event events[MONITOR_EVENTS_MAX];
    write_events(sink->state, events, monitor_of_epoch(epoch, events), epoch->all_samples);
}

const sink_kind wandb_lines = {.open = open_wandb,
                               .close = close_wandb,
                               .update = update_wandb,
                               .epoch = epoch_wandb};

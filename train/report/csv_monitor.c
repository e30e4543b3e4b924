/* SPDX-License-Identifier: Apache-2.0
 *
 * csv_monitor: writes DeepSpeed's CSV files, one for each name of an event, for example
 * output_path/job_name/Train_Samples_lr.csv with the header "step,lr". A later run appends its own
 * header and lines to the files.
 */
#include <stdio.h>
#include <string.h>

#include "errors.h"
#include "floats.h"
#include "monitor_events.h"
#include "sink.h"
#include "sink_file.h"

typedef struct csv_state {
    char folder[OUTPUT_PATH_MAX];
    sink_file files[MONITOR_NAMES];
    bool failed; /* a file could not be opened; close_csv() reports it */
} csv_state;

static ring_status open_csv(report_sink *sink)
{
    const monitor_config *config = &sink->run->config->csv;
    if (!config->enabled)
        return RING_OK;
    csv_state *csv = sink_create_state(sink, sizeof *csv);
    if (csv == NULL)
        return RING_ERR_MEMORY;
    return sink_folder_create("csv_monitor", config->output_path, config->job_name, csv->folder);
}

static ring_status close_csv(report_sink *sink)
{
    csv_state *csv = sink->state;
    ring_status first = RING_OK;
    for (int i = 0; i < MONITOR_NAMES; i++) {
        const ring_status status = sink_file_close(&csv->files[i]);
        first = first == RING_OK ? status : first;
    }
    if (first == RING_OK && csv->failed)
        return train_fail(RING_ERR_SYSTEM, "csv_monitor: cannot create files in %s", csv->folder);
    return first;
}

/* Opens the file of an event unless it is open: for "Train/Samples/lr", Train_Samples_lr.csv with
 * "lr" in its header. */
static bool open_file(csv_state *csv, const monitor_event *event)
{
    sink_file *file = &csv->files[event->number];
    char path[OUTPUT_PATH_MAX];
    if (file->stream != NULL)
        return true;
    const size_t folder = strlen(csv->folder);
    if (snprintf(path, sizeof path, "%s/%s.csv", csv->folder, event->name) >= (int)sizeof path)
        return false;
    for (char *at = path + folder + 1; *at != '\0'; at++)
        *at = *at == '/' ? '_' : *at;
    if (sink_file_open(file, "csv_monitor", path, true) != RING_OK)
        return false;
    sink_file_print(file, "step,%s\r\n", strrchr(event->name, '/') + 1);
    return true;
}

static void write_events(csv_state *csv, const monitor_event *events, int count, long samples)
{
    for (int i = 0; i < count; i++) {
        char value[FLOAT_TEXT_MAX];
        if (open_file(csv, &events[i]))
            sink_file_print(&csv->files[events[i].number], "%ld,%s\r\n", samples,
                            float_repr(events[i].value, value));
        else
            csv->failed = true;
    }
}

static void update_csv(report_sink *sink, const report_step *step)
{
    monitor_event events[MONITOR_EVENTS_MAX];
    write_events(sink->state, events, monitor_of_step(sink->run, step, events), step->all_samples);
}

static void epoch_csv(report_sink *sink, const report_epoch *epoch)
{
    monitor_event events[MONITOR_EVENTS_MAX];
    write_events(sink->state, events, monitor_of_epoch(epoch, events), epoch->all_samples);
}

const sink_kind csv_monitor = {.open = open_csv,
                               .close = close_csv,
                               .update = update_csv,
                               .epoch = epoch_csv};

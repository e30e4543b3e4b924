/* SPDX-License-Identifier: Apache-2.0
 * Line after line; what a line is follows from its members. */
#include "metrics_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "errors.h"
#include "text_file.h"

enum { PATH_MAX_BYTES = 4096 };
/* Two million updates. */
static const size_t most_bytes = (size_t)256 << 20;

/* ---- Tables -------------------------------------------------------------------------------- */

static bool make_room(metrics_table *table)
{
    const size_t room = table->room > 0 ? 2 * table->room : 256;
    if (table->count < table->room)
        return true;
    for (int c = 0; c < table->columns; c++) {
        double *list = realloc(table->list[c], room * sizeof *list);
        if (list == NULL)
            return false;
        table->list[c] = list;
    }
    table->room = room;
    return true;
}

static ring_status add_row(metrics_table *table, const double *row)
{
    if (!make_room(table))
        return train_fail(RING_ERR_MEMORY, "no memory for the metrics");
    for (int c = 0; c < table->columns; c++)
        table->list[c][table->count] = row[c];
    table->count++;
    return RING_OK;
}

static void free_table(metrics_table *table)
{
    for (int c = 0; c < table->columns; c++)
        free(table->list[c]);
}

/* ---- Runs ---------------------------------------------------------------------------------- */

static ring_status add_run(metrics_runs *runs, const char *path, cJSON *about)
{
    metrics_run *list = realloc(runs->list, (runs->count + 1) * sizeof *list);
    if (list == NULL) {
        cJSON_Delete(about);
        return train_fail(RING_ERR_MEMORY, "no memory for the metrics");
    }
    runs->list = list;
    metrics_run *run = &list[runs->count++];
    *run = (metrics_run){.about = about, .steps.columns = COLUMNS, .epochs.columns = EPOCH_COLUMNS};
    snprintf(run->name, sizeof run->name, "%s", path);
    return RING_OK;
}

void metrics_runs_free(metrics_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        cJSON_Delete(runs->list[i].about);
        cJSON_Delete(runs->list[i].devices);
        cJSON_Delete(runs->list[i].pipeline);
        free_table(&runs->list[i].steps);
        free_table(&runs->list[i].epochs);
    }
    free(runs->list);
    *runs = (metrics_runs){0};
}

const char *metrics_text(const metrics_run *run, const char *member, char text[64])
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(run->about, member);
    text[0] = '\0';
    if (cJSON_IsString(value))
        snprintf(text, 64, "%s", value->valuestring);
    else if (cJSON_IsNumber(value))
        snprintf(text, 64, "%.10g", value->valuedouble);
    return text;
}

/* ---- Lines --------------------------------------------------------------------------------- */

static double number(const cJSON *line, const char *member, double fallback)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(line, member);
    return cJSON_IsNumber(value) ? value->valuedouble : fallback;
}

/* The latest one counts. @param[in,out] kept  NULL: none yet */
static void keep_member(cJSON **kept, cJSON *line, const char *member)
{
    cJSON *found = cJSON_DetachItemFromObjectCaseSensitive(line, member);
    if (found == NULL)
        return;
    cJSON_Delete(*kept);
    *kept = found;
}

static ring_status add_step(metrics_run *run, const cJSON *line)
{
    const double row[COLUMNS] = {[COLUMN_STEP] = number(line, "step", 0),
                                 [COLUMN_LOSS] = number(line, "loss", NAN),
                                 [COLUMN_LR] = number(line, "lr", 0),
                                 [COLUMN_GRAD_NORM] = number(line, "grad_norm", NAN),
                                 [COLUMN_RATE] = number(line, "samples_per_s", 0)};
    return add_row(&run->steps, row);
}

static ring_status add_epoch(metrics_run *run, const cJSON *line)
{
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(line, "seconds");
    double row[EPOCH_COLUMNS] = {[EPOCH_NUMBER] = number(line, "after_epoch", 0),
                                 [EPOCH_STEP] = number(line, "after_step", 0),
                                 [EPOCH_LOSS] = number(line, "loss", 0),
                                 [EPOCH_ACCURACY] = number(line, "accuracy", NAN),
                                 [EPOCH_TEST_LOSS] = number(line, "test_loss", NAN),
                                 [EPOCH_RATE] = number(line, "samples_per_s", 0),
                                 [EPOCH_OVERLAP] = number(line, "overlap", -1)};
    for (int p = 0; p < PARTS; p++)
        row[EPOCH_PARTS + p] = number(seconds, part_names[p], 0);
    return add_row(&run->epochs, row);
}

/* @param line  the caller's; parts may be taken from it. */
static ring_status take_line(metrics_runs *runs, const char *path, cJSON *line, size_t before)
{
    if (cJSON_HasObjectItem(line, "run"))
        return add_run(runs, path, cJSON_DetachItemFromObjectCaseSensitive(line, "run"));
    if (runs->count == before)
        RING_TRY(add_run(runs, path, NULL));
    metrics_run *run = &runs->list[runs->count - 1];
    keep_member(&run->devices, line, "devices");
    keep_member(&run->pipeline, line, "pipeline");
    if (cJSON_HasObjectItem(line, "step"))
        return add_step(run, line);
    return cJSON_HasObjectItem(line, "after_epoch") ? add_epoch(run, line) : RING_OK;
}

static ring_status take_text(metrics_runs *runs, const char *path, char *text, size_t length)
{
    const size_t before = runs->count;
    const char *const end = text + length;
    ring_status status = RING_OK;
    int number_of_line = 0;
    for (char *at = text; at < end && status == RING_OK;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL)
            break; /* the run was killed while it wrote */
        cJSON *line = cJSON_ParseWithLength(at, (size_t)(stop - at));
        number_of_line++;
        status = cJSON_IsObject(line)
                     ? take_line(runs, path, line, before)
                     : train_fail(RING_ERR_CONFIG,
                                  "%s:%d: no JSON object; give what --metrics wrote", path,
                                  number_of_line);
        cJSON_Delete(line);
        at += stop - at + 1;
    }
    if (status == RING_OK && runs->count == before)
        return train_fail(RING_ERR_CONFIG, "%s: no metrics; give what --metrics wrote", path);
    return status;
}

ring_status metrics_runs_read(metrics_runs *runs, const char *path)
{
    char file[PATH_MAX_BYTES], *text = NULL;
    struct stat info;
    size_t length = 0;
    const bool folder = stat(path, &info) == 0 && S_ISDIR(info.st_mode);
    snprintf(file, sizeof file, "%s%s", path, folder ? "/metrics.jsonl" : "");
    ring_status status = text_file_read(file, most_bytes, "a file of metrics", &text, &length);
    if (status == RING_OK)
        status = take_text(runs, path, text, length);
    free(text);
    return status;
}

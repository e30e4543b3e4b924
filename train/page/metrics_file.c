/* SPDX-License-Identifier: Apache-2.0
 * Reads metrics line by line, and adds each line to the table that its members belong to. */
#include "metrics_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "errors.h"
#include "text_file.h"

enum { PATH_MAX_BYTES = 4096 };
/* The largest file, which has room for two million updates. */
static const size_t most_bytes = (size_t)256 << 20;

static const char *const step_members[STEP_COLUMNS] = {"step", "loss", "lr", "grad_norm",
                                                       "samples_per_s"};
static const char *const epoch_members[EPOCH_MEMBERS] = {"after_epoch", "accuracy", "test_loss",
                                                         "overlap"};

/* ---- Tables -------------------------------------------------------------------------------- */

const char *metrics_column_name(const metrics_table *table, int column)
{
    return column < table->member_count ? table->members[column]
                                        : part_names[column - table->member_count];
}

/* Makes room for one more row. @return false: there is no memory. */
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

static ring_status add_row(metrics_table *table, const cJSON *line)
{
    const cJSON *seconds = cJSON_GetObjectItemCaseSensitive(line, "seconds");
    if (!make_room(table))
        return train_fail(RING_ERR_MEMORY, "no memory for the metrics");
    for (int c = 0; c < table->columns; c++) {
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(c < table->member_count ? line
                                                                                      : seconds,
                                                              metrics_column_name(table, c));
        table->list[c][table->count] = cJSON_IsNumber(value) ? value->valuedouble : (double)NAN;
    }
    table->count++;
    return RING_OK;
}

static void free_table(metrics_table *table)
{
    for (int c = 0; c < table->columns; c++)
        free(table->list[c]);
}

/* ---- Runs ---------------------------------------------------------------------------------- */

/* Adds an item to the facts of a run, and replaces an earlier item with this name.
 * @param item  moved into the run; NULL: does nothing */
static ring_status keep(metrics_run *run, const char *name, cJSON *item)
{
    if (item == NULL)
        return RING_OK;
    cJSON_DeleteItemFromObjectCaseSensitive(run->facts, name);
    if (cJSON_AddItemToObject(run->facts, name, item))
        return RING_OK;
    cJSON_Delete(item);
    return train_fail(RING_ERR_MEMORY, "no memory for the metrics");
}

static ring_status keep_member(metrics_run *run, cJSON *line, const char *member)
{
    return keep(run, member, cJSON_DetachItemFromObjectCaseSensitive(line, member));
}

static ring_status add_run(metrics_runs *runs, const char *path)
{
    metrics_run *list = realloc(runs->list, (runs->count + 1) * sizeof *list);
    if (list == NULL)
        return train_fail(RING_ERR_MEMORY, "no memory for the metrics");
    runs->list = list;
    metrics_run *run = &list[runs->count++];
    *run = (metrics_run){.facts = cJSON_CreateObject(),
                         .steps = {.members = step_members,
                                   .member_count = STEP_COLUMNS,
                                   .columns = STEP_COLUMNS},
                         .epochs = {.members = epoch_members,
                                    .member_count = EPOCH_MEMBERS,
                                    .columns = EPOCH_MEMBERS + PARTS}};
    return keep(run, "name", cJSON_CreateString(path));
}

void metrics_runs_free(metrics_runs *runs)
{
    for (size_t i = 0; i < runs->count; i++) {
        cJSON_Delete(runs->list[i].facts);
        free_table(&runs->list[i].steps);
        free_table(&runs->list[i].epochs);
    }
    free(runs->list);
    *runs = (metrics_runs){0};
}

/* ---- Lines --------------------------------------------------------------------------------- */

/* @param line    borrowed; some of its members are moved into the run
 * @param before  number of runs from earlier files */
static ring_status add_line(metrics_runs *runs, const char *path, cJSON *line, size_t before)
{
    const bool begins = cJSON_HasObjectItem(line, "run");
    if (begins || runs->count == before)
        RING_TRY(add_run(runs, path));
    metrics_run *run = &runs->list[runs->count - 1];
    if (begins)
        return keep_member(run, line, "run");
    RING_TRY(keep_member(run, line, "devices"));
    RING_TRY(keep_member(run, line, "pipeline"));
    if (cJSON_HasObjectItem(line, "step"))
        return add_row(&run->steps, line);
    return cJSON_HasObjectItem(line, "after_epoch") ? add_row(&run->epochs, line) : RING_OK;
}

static ring_status add_text(metrics_runs *runs, const char *path, char *text, size_t length)
{
    const size_t before = runs->count;
    const char *const end = text + length;
    ring_status status = RING_OK;
    int number_of_line = 0;
    for (char *at = text; at < end && status == RING_OK;) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop == NULL)
            break; /* the last line is unfinished: the run was killed */
        cJSON *line = cJSON_ParseWithLength(at, (size_t)(stop - at));
        number_of_line++;
        status = cJSON_IsObject(line)
                     ? add_line(runs, path, line, before)
                     : train_fail(RING_ERR_CONFIG,
                                  "%s:%d: the line is not a JSON object; give a file that "
                                  "--metrics wrote",
                                  path, number_of_line);
        cJSON_Delete(line);
        at += stop - at + 1;
    }
    if (status == RING_OK && runs->count == before)
        return train_fail(RING_ERR_CONFIG,
                          "%s: the file has no metrics; give a file that --metrics wrote", path);
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
        status = add_text(runs, path, text, length);
    free(text);
    return status;
}

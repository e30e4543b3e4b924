/* SPDX-License-Identifier: Apache-2.0
 * Prints the report as JSON: an object for each section, and the settings as a list. */
#include "show.h"

#include "settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void show_json_tree(cJSON *json)
{
    char *text = json != NULL ? cJSON_Print(json) : NULL;
    if (text == NULL) {
        fputs("ringinfo: out of memory\n", stderr);
        exit(3);
    }
    puts(text);
    cJSON_free(text);
    cJSON_Delete(json);
}

static void add_finding(cJSON *findings, const info_row *row)
{
    cJSON *finding = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(findings, finding))
        return;
    cJSON_AddStringToObject(finding, "level", verdict_name(row->verdict));
    cJSON_AddStringToObject(finding, "section", row->section);
    cJSON_AddStringToObject(finding, "name", row->name);
    cJSON_AddStringToObject(finding, "value", row->value);
    cJSON_AddStringToObject(finding, "advice", row->advice);
}

static cJSON *settings_json(void)
{
    size_t count;
    settings_row *rows = settings_rows(&count);
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < count; i++) {
        cJSON *one = cJSON_CreateObject();
        cJSON_AddStringToObject(one, "name", rows[i].name);
        cJSON_AddStringToObject(one, "value", rows[i].value);
        cJSON_AddStringToObject(one, "source", rows[i].source);
        cJSON_AddStringToObject(one, "default", rows[i].fallback);
        cJSON_AddStringToObject(one, "unit", rows[i].unit);
        cJSON_AddStringToObject(one, "help", rows[i].help);
        if (rows[i].nccl != NULL)
            cJSON_AddStringToObject(one, "nccl", rows[i].nccl);
        cJSON_AddItemToArray(list, one);
    }
    free(rows);
    return list;
}

void show_json(const report *r)
{
    cJSON *all = cJSON_CreateObject();
    cJSON *findings = cJSON_CreateArray();
    for (size_t i = 0; i < r->count; i++) {
        const info_row *row = &r->rows[i];
        cJSON *section = cJSON_GetObjectItemCaseSensitive(all, row->section);
        if (section == NULL)
            section = cJSON_AddObjectToObject(all, row->section);
        if (row->is_number)
            cJSON_AddNumberToObject(section, row->name, row->number);
        else
            cJSON_AddStringToObject(section, row->name, row->value);
        if (row->verdict == VERDICT_WARN || row->verdict == VERDICT_FAIL)
            add_finding(findings, row);
    }
    cJSON_AddItemToObject(all, "findings", findings);
    cJSON_AddItemToObject(all, "environment", settings_json());
    show_json_tree(all);
}

void show_json_settings(void)
{
    show_json_tree(settings_json());
}

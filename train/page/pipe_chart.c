/* SPDX-License-Identifier: Apache-2.0
 * Lists of numbers into rows of spans, twice. */
#include "pipe_chart.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "chart.h"

enum { STAGES_MAX = 256, MICROS_MAX = 65536 };

static const char *const kinds[] = {"forward", "backward"};

/* One figure: a row a stage, two spans a micro-batch. */
typedef struct picture {
    chart_row rows[STAGES_MAX];
    int each; /* numbers of a micro-batch: begins and ends, or ends alone */
    size_t stages, micros;
    double length, busy; /* of the longest row, of all spans */
} picture;

/* @return false unless @p list is @p count numbers. */
static bool read_numbers(const cJSON *list, double *numbers, int count)
{
    const cJSON *item;
    int got = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsNumber(item) || got == count)
            return false;
        numbers[got++] = item->valuedouble;
    }
    return got == count;
}

static bool add_span(picture *drawn, chart_row *row, const chart_span *span)
{
    if (!(span->begin >= 0.0 && span->end >= span->begin && span->end < 1e9))
        return false;
    row->spans[row->count++] = *span;
    drawn->length = fmax(drawn->length, span->end);
    drawn->busy += span->end - span->begin;
    return true;
}

/* Seconds, to be shown in milliseconds; or slots. */
static bool add_micro(picture *drawn, chart_row *row, const cJSON *micro)
{
    double at[4] = {0.0};
    const int number = (int)row->count / 2;
    const bool timed = drawn->each == 4;
    if (!read_numbers(micro, at, drawn->each))
        return false;
    for (size_t kind = 0; kind < 2; kind++) {
        const double end = timed ? 1e3 * at[2 * kind + 1] : at[kind];
        const double begin = timed ? 1e3 * at[2 * kind] : end - 1.0;
        if (!add_span(drawn, row, &(chart_span){(int)kind, number, begin, end}))
            return false;
    }
    return true;
}

static bool add_stage(picture *drawn, const cJSON *micros)
{
    const int count = cJSON_GetArraySize(micros);
    const cJSON *micro;
    if (drawn->stages == STAGES_MAX || count < 1 || count > MICROS_MAX)
        return false;
    chart_row *row = &drawn->rows[drawn->stages];
    row->spans = calloc((size_t)count, 2 * sizeof *row->spans);
    if (row->spans == NULL)
        return false;
    snprintf(row->name, sizeof row->name, "stage %zu", drawn->stages++);
    drawn->micros = (size_t)count;
    cJSON_ArrayForEach(micro, micros)
    {
        if (!add_micro(drawn, row, micro))
            return false;
    }
    return true;
}

static void note_shares(picture *drawn)
{
    for (size_t s = 0; s < drawn->stages; s++) {
        chart_row *row = &drawn->rows[s];
        double busy = 0.0;
        for (size_t i = 0; i < row->count; i++)
            busy += row->spans[i].end - row->spans[i].begin;
        snprintf(row->note, sizeof row->note, "busy %.1f %%", 100.0 * busy / drawn->length);
    }
}

/* @return false if the list is not one of stages. End with free_picture() whatever the result. */
static bool read_picture(picture *drawn, const cJSON *pipeline, const char *member, int each)
{
    const cJSON *stages = cJSON_GetObjectItemCaseSensitive(pipeline, member), *stage;
    drawn->each = each;
    cJSON_ArrayForEach(stage, stages)
    {
        if (!add_stage(drawn, stage))
            return false;
    }
    if (!(drawn->length > 1e-9))
        return false;
    note_shares(drawn);
    return true;
}

static void free_picture(picture *drawn)
{
    for (size_t s = 0; s < STAGES_MAX; s++)
        free(drawn->rows[s].spans);
}

static double idle_percent(const picture *drawn)
{
    return 100.0 * (1.0 - drawn->busy / drawn->length / (double)drawn->stages);
}

static void draw(FILE *out, const picture *measured, const picture *counted, double step)
{
    char title[96];
    fputs("<div class=\"charts\"><div>\n", out);
    snprintf(title, sizeof title, "Pipeline as it ran, update %.0f", step);
    chart_spans(out, title, kinds, 2, "ms", measured->length, measured->rows, measured->stages);
    fputs("</div><div>\n", out);
    chart_spans(out, "Pipeline with passes of equal length", kinds, 2, "slots", counted->length,
                counted->rows, counted->stages);
    fprintf(out,
            "</div></div>\n<p>Stages were idle %.1f %% of %.4g ms; %.1f %% of %.0f slots if all "
            "passes took one, (p &#8722; 1)/(m + p &#8722; 1) for p = %zu stages and m = %zu "
            "micro-batches.</p>\n",
            idle_percent(measured), measured->length, idle_percent(counted), counted->length,
            counted->stages, counted->micros);
}

void pipe_chart_write(FILE *out, const cJSON *pipeline)
{
    picture *both = calloc(2, sizeof *both);
    const cJSON *step = cJSON_GetObjectItemCaseSensitive(pipeline, "step");
    if (both == NULL)
        return;
    if (read_picture(&both[0], pipeline, "measured", 4) &&
        read_picture(&both[1], pipeline, "predicted", 2))
        draw(out, &both[0], &both[1], cJSON_IsNumber(step) ? step->valuedouble : 0.0);
    free_picture(&both[0]);
    free_picture(&both[1]);
    free(both);
}

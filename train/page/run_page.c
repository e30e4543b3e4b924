/* SPDX-License-Identifier: Apache-2.0
 * Replaces two marks in run_page.html: one by the table of runs, the other by their metrics as
 * JSON, which the script of the page reads. */
#include "run_page.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "errors.h"

enum { POINTS_MAX = 400 /* points of a line in a chart */, COLOURS = 9 /* as in run_page.html */ };

static const unsigned char page[] = {
#include "run_page.inc"
    0};

/* Writes text for XML, or JSON for an element of XML, and escapes the characters that XML reserves.
 * cJSON has already escaped the characters that JSON reserves. */
static void write_escaped(FILE *out, const char *text, bool json)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        if (strchr("<>&", c) != NULL)
            fprintf(out, json ? "\\u%04x" : "&#%u;", c);
        else if (c >= ' ')
            fputc(c, out);
    }
}

/* ---- The table ----------------------------------------------------------------------------- */

static void write_cell(FILE *out, const char *text)
{
    fputs("<td>", out);
    write_escaped(out, text, false);
    fputs("</td>", out);
}

/* Writes four significant digits, or, from 1000 to 1e9, all digits before the point. */
static void write_number(FILE *out, double value)
{
    char text[64] = "";
    if (isfinite(value))
        snprintf(text, sizeof text, fabs(value) >= 1e3 && fabs(value) < 1e9 ? "%.0f" : "%.4g",
                 value);
    write_cell(out, text);
}

static void write_last(FILE *out, const metrics_table *table, int column)
{
    write_number(out, table->count > 0 ? table->list[column][table->count - 1] : (double)NAN);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* @return the median of the finite values; NAN if there are no finite values. */
static double median(const double *values, size_t count)
{
    double *known = malloc((count + 1) * sizeof *known), middle = (double)NAN;
    size_t found = 0;
    for (size_t i = 0; i < count && known != NULL; i++) {
        if (isfinite(values[i]))
            known[found++] = values[i];
    }
    if (found > 0) {
        qsort(known, found, sizeof *known, compare);
        middle = known[found / 2];
    }
    free(known);
    return middle;
}

/* Writes a text or number from the first line of the run. */
static void write_fact(FILE *out, const metrics_run *run, const char *name)
{
    const cJSON *about = cJSON_GetObjectItemCaseSensitive(run->facts, "run");
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(about, name);
    char text[64] = "";
    if (cJSON_IsNumber(value))
        snprintf(text, sizeof text, "%.10g", value->valuedouble);
    write_cell(out, cJSON_IsString(value) ? value->valuestring : text);
}

static void write_run(FILE *out, const metrics_run *run, size_t number)
{
    static const char *const members[] = {"model", "parameters", "ranks", "seed", "started"};
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(run->facts, "name");
    fprintf(out, "<tr><td><span class=\"key\"><i class=\"c%zu\"></i>", number % COLOURS);
    write_escaped(out, name->valuestring, false);
    fputs("</span></td>", out);
    for (size_t m = 0; m < sizeof members / sizeof *members; m++)
        write_fact(out, run, members[m]);
    write_last(out, &run->steps, COLUMN_STEP);
    write_last(out, &run->steps, COLUMN_LOSS);
    write_last(out, &run->epochs, EPOCH_ACCURACY);
    write_last(out, &run->epochs, EPOCH_TEST_LOSS);
    write_number(out, median(run->steps.list[COLUMN_RATE], run->steps.count));
    fputs("</tr>\n", out);
}

/* ---- The script's numbers ------------------------------------------------------------------ */

/* @return the mean of the finite values; NAN if there are no finite values. */
static double mean(const double *values, size_t count)
{
    double sum = 0.0, known = 0.0;
    for (size_t i = 0; i < count; i++) {
        if (isfinite(values[i])) {
            sum += values[i];
            known += 1.0;
        }
    }
    return sum / known;
}

/* Reduces a long column to at most POINTS_MAX points, each for a span of rows.
 * @param means  a point is the mean of its span; false: the last value of its span */
static cJSON *thinned(const double *values, size_t count, bool means)
{
    const size_t points = count < POINTS_MAX ? count : POINTS_MAX;
    double shown[POINTS_MAX];
    for (size_t p = 0; p < points; p++) {
        const size_t begin = count * p / points, end = count * (p + 1) / points;
        shown[p] = means ? mean(values + begin, end - begin) : values[end - 1];
    }
    return cJSON_CreateDoubleArray(shown, (int)points);
}

/* Adds the columns of a table to the facts, as lists of points.
 * @param means  average all columns except the first, which is the position of a row */
static bool add_table(cJSON *facts, const char *name, const metrics_table *table, bool means)
{
    cJSON *columns = cJSON_AddObjectToObject(facts, name);
    cJSON *seconds = cJSON_AddObjectToObject(columns, "seconds");
    bool added = cJSON_AddNumberToObject(columns, "rows", (double)table->count) != NULL;
    for (int c = 0; c < table->columns && added; c++)
        added = cJSON_AddItemToObject(c < table->member_count ? columns : seconds,
                                      metrics_column_name(table, c),
                                      thinned(table->list[c], table->count, means && c > 0));
    return added;
}

/* Writes the facts and points of a run as JSON. cJSON writes NaN and infinity as null. */
static bool write_facts(FILE *out, const metrics_run *run)
{
    char *text = NULL;
    if (add_table(run->facts, "steps", &run->steps, true) &&
        add_table(run->facts, "epochs", &run->epochs, false))
        text = cJSON_PrintUnformatted(run->facts);
    if (text != NULL)
        write_escaped(out, text, true);
    free(text);
    return text != NULL;
}

/* ---- The page ------------------------------------------------------------------------------ */

/* Writes the text before the mark. @return the text after the mark. */
static const char *write_up_to(FILE *out, const char *text, const char *mark)
{
    const char *at = strstr(text, mark);
    fwrite(text, 1, (size_t)(at - text), out);
    return at + strlen(mark);
}

ring_status run_page_write(FILE *out, metrics_runs *runs)
{
    const char *rest = write_up_to(out, (const char *)page, "@table@");
    for (size_t i = 0; i < runs->count; i++)
        write_run(out, &runs->list[i], i);
    rest = write_up_to(out, rest, "@runs@");
    for (size_t i = 0; i < runs->count; i++) {
        fputs(i > 0 ? ",\n" : "", out);
        if (!write_facts(out, &runs->list[i]))
            return train_fail(RING_ERR_MEMORY, "no memory for the page");
    }
    fputs(rest, out);
    return RING_OK;
}

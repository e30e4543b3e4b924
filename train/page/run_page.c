/* SPDX-License-Identifier: Apache-2.0
 * Tables and charts, one after another. */
#include "run_page.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "chart.h"
#include "pipe_chart.h"

enum { BARS_MAX = 32, RUNS_IN_CHART = 32 };

#define MIB ((double)(1L << 20))

static const char head[] =
    "<!DOCTYPE html>\n"
    "<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
    "<meta name=\"viewport\" content=\"width=device-width\"/><title>ringtrain report</title>\n"
    "<style>\n"
    ":root{color-scheme:light dark;--back:#fff;--text:#1f2328;--grid:#d8dee4;"
    "--c0:#0969da;--c1:#bc4c00;--c2:#1a7f37;--c3:#8250df;--c4:#bf3989;--c5:#1b7c83;--c6:#9a6700;"
    "--c7:#6e7781;--c8:#57ab5a}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#0d1117;--text:#e6edf3;--grid:#30363d;"
    "--c0:#58a6ff;--c1:#f0883e;--c2:#3fb950;--c3:#bc8cff;--c4:#f778ba;--c5:#39c5cf;--c6:#d29922;"
    "--c7:#8b949e;--c8:#96d0ff}}\n"
    "body{background:var(--back);color:var(--text);font:15px/1.5 system-ui,sans-serif;"
    "max-width:1320px;margin:1.5em auto;padding:0 1em}\n"
    "table{border-collapse:collapse;margin:.5em 0}th,td{border-bottom:1px solid var(--grid);"
    "padding:.2em .8em;text-align:right}th:first-child,td:first-child{text-align:left}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(420px,100%),1fr));"
    "gap:1em}figure{margin:0}figcaption{font-weight:600}svg{width:100%;height:auto}\n"
    "svg text{fill:var(--text);font-size:12px}.end{text-anchor:end}.mid{text-anchor:middle}\n"
    ".grid{stroke:var(--grid)}.line{fill:none;stroke-width:1.6;stroke:currentColor}\n"
    "svg .in{fill:var(--back)}.dot{fill:currentColor}.keys "
    "i{display:inline-block;width:.8em;height:.8em;margin-right:.3em;"
    "background:currentColor}.keys span{margin-right:1em}\n";

static void write_colours(FILE *out)
{
    for (int c = 0; c < CHART_COLOURS; c++)
        fprintf(out, ".c%d,.b%d{color:var(--c%d)}.f%d{fill:var(--c%d)}\n", c, c, c, c, c);
    fputs("</style></head>\n<body>\n<h1>ringtrain report</h1>\n", out);
}

/* ---- Runs ---------------------------------------------------------------------------------- */

static void write_cell(FILE *out, const char *text)
{
    fputs("<td>", out);
    chart_text(out, text);
    fputs("</td>", out);
}

/* Of the last row. */
static void write_number(FILE *out, const metrics_table *table, int column)
{
    char text[64] = "";
    if (table->count > 0 && isfinite(table->list[column][table->count - 1]))
        snprintf(text, sizeof text, "%.10g", table->list[column][table->count - 1]);
    write_cell(out, text);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void write_median(FILE *out, const metrics_table *steps)
{
    char text[64] = "";
    double *sorted = malloc((steps->count + 1) * sizeof *sorted);
    if (sorted != NULL && steps->count > 0) {
        memcpy(sorted, steps->list[COLUMN_RATE], steps->count * sizeof *sorted);
        qsort(sorted, steps->count, sizeof *sorted, compare);
        snprintf(text, sizeof text, "%.6g", sorted[steps->count / 2]);
    }
    free(sorted);
    write_cell(out, text);
}

static void write_run(FILE *out, const metrics_run *run, size_t number)
{
    static const char *const members[] = {"model", "parameters", "ranks", "seed", "started"};
    char text[64];
    fprintf(out, "<tr><td><span class=\"keys\"><i class=\"b%zu\"></i></span>",
            number % CHART_COLOURS);
    chart_text(out, run->name);
    fputs("</td>", out);
    for (size_t m = 0; m < sizeof members / sizeof *members; m++)
        write_cell(out, metrics_text(run, members[m], text));
    write_number(out, &run->steps, COLUMN_STEP);
    write_number(out, &run->steps, COLUMN_LOSS);
    write_number(out, &run->epochs, EPOCH_ACCURACY);
    write_number(out, &run->epochs, EPOCH_TEST_LOSS);
    write_median(out, &run->steps);
    fputs("</tr>\n", out);
}

static void write_runs(FILE *out, const metrics_runs *runs)
{
    fputs("<table><tr><th>run</th><th>model</th><th>parameters</th><th>ranks</th><th>seed</th>"
          "<th>started</th><th>updates</th><th>last loss</th><th>test accuracy</th><th>test "
          "loss</th><th>samples/s, median</th></tr>\n",
          out);
    for (size_t i = 0; i < runs->count; i++)
        write_run(out, &runs->list[i], i);
    fputs("</table>\n", out);
}

/* ---- Charts -------------------------------------------------------------------------------- */

static void write_lines(FILE *out, const metrics_runs *runs, const char *title, bool of_epochs,
                        int x, int y)
{
    chart_line lines[RUNS_IN_CHART];
    const size_t count = runs->count < RUNS_IN_CHART ? runs->count : RUNS_IN_CHART;
    for (size_t i = 0; i < count; i++) {
        const metrics_run *run = &runs->list[i];
        const metrics_table *table = of_epochs ? &run->epochs : &run->steps;
        lines[i] = (chart_line){run->name, table->list[x], table->list[y], table->count};
    }
    chart_lines(out, title, of_epochs ? "epoch" : "update", lines, count);
}

/* States how many are left out. */
static void write_left_out(FILE *out, const char *what, size_t shown, size_t all)
{
    if (shown < all)
        fprintf(out, "<p>%zu of %zu %s are drawn.</p>\n", shown, all, what);
}

static void write_charts(FILE *out, const metrics_runs *runs)
{
    write_left_out(out, "runs", RUNS_IN_CHART, runs->count);
    fputs("<div class=\"charts\">\n", out);
    write_lines(out, runs, "Loss", false, COLUMN_STEP, COLUMN_LOSS);
    write_lines(out, runs, "Test accuracy", true, EPOCH_NUMBER, EPOCH_ACCURACY);
    write_lines(out, runs, "Test loss", true, EPOCH_NUMBER, EPOCH_TEST_LOSS);
    write_lines(out, runs, "Learning rate", false, COLUMN_STEP, COLUMN_LR);
    write_lines(out, runs, "Norm of the gradient", false, COLUMN_STEP, COLUMN_GRAD_NORM);
    write_lines(out, runs, "Samples a second", false, COLUMN_STEP, COLUMN_RATE);
    fputs("</div>\n", out);
}

/* Of many epochs some, the last among them. */
static void write_times(FILE *out, const metrics_run *run)
{
    const metrics_table *epochs = &run->epochs;
    const size_t count = epochs->count < BARS_MAX ? epochs->count : BARS_MAX;
    chart_bar bars[BARS_MAX];
    for (size_t b = 0; b < count; b++) {
        const size_t row = epochs->count * (b + 1) / count - 1;
        snprintf(bars[b].name, sizeof bars[b].name, "epoch %.0f", epochs->list[EPOCH_NUMBER][row]);
        for (int p = 0; p < PARTS; p++)
            bars[b].parts[p] = epochs->list[EPOCH_PARTS + p][row];
    }
    if (count > 0)
        chart_bars(out, "Where the time of updates went, rank 0", part_names, PARTS, "s", bars,
                   count);
    write_left_out(out, "epochs", count, epochs->count);
    if (count > 0 && epochs->list[EPOCH_OVERLAP][epochs->count - 1] >= 0.0)
        fprintf(out,
                "<p>In the last epoch %.1f %% of the reduction was hidden behind backward.</p>\n",
                100.0 * epochs->list[EPOCH_OVERLAP][epochs->count - 1]);
}

/* ---- Memory -------------------------------------------------------------------------------- */

static double member(const cJSON *object, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, name);
    return cJSON_IsNumber(value) ? value->valuedouble : 0.0;
}

enum { MEMORY_PARTS = 6 };

static const char *const memory_names[MEMORY_PARTS] = {"parameters", "gradients",   "states",
                                                       "live",       "activations", "batch"};

static chart_bar memory_bar(const cJSON *memory, size_t rank)
{
    chart_bar bar;
    snprintf(bar.name, sizeof bar.name, "rank %zu", rank);
    for (int p = 0; p < MEMORY_PARTS; p++)
        bar.parts[p] = member(memory, memory_names[p]) / MIB;
    return bar;
}

static void write_memory(FILE *out, const metrics_run *run)
{
    const cJSON *memory = cJSON_GetObjectItemCaseSensitive(run->about, "memory"), *rank;
    const int ranks = cJSON_GetArraySize(memory);
    chart_bar *bars = calloc((size_t)ranks + 1, sizeof *bars);
    size_t count = 0;
    if (bars == NULL)
        return;
    cJSON_ArrayForEach(rank, memory)
    {
        bars[count] = memory_bar(rank, count);
        count++;
    }
    if (count > 0)
        chart_bars(out, "Memory of each rank", memory_names, MEMORY_PARTS, "MiB", bars, count);
    free(bars);
}

static void write_devices(FILE *out, const metrics_run *run)
{
    const cJSON *device;
    int rank = 0;
    if (run->devices == NULL)
        return;
    fputs("<table><tr><th>rank</th><th>resident, MiB</th><th>at most, MiB</th><th>CPU</th></tr>\n",
          out);
    cJSON_ArrayForEach(device, run->devices)
    {
        fprintf(out, "<tr><td>%d</td><td>%.1f</td><td>%.1f</td><td>%.0f %%</td></tr>\n", rank++,
                member(device, "resident") / MIB, member(device, "peak") / MIB,
                100.0 * member(device, "cpu"));
    }
    fputs("</table>\n", out);
}

/* ---- Settings ------------------------------------------------------------------------------ */

static void write_settings(FILE *out, const metrics_run *run)
{
    const cJSON *config = cJSON_GetObjectItemCaseSensitive(run->about, "config"), *setting;
    fputs("<details><summary>Settings</summary><table>\n", out);
    cJSON_ArrayForEach(setting, config)
    {
        if (setting->string == NULL)
            continue; /* a list, which --metrics does not write */
        fputs("<tr>", out);
        write_cell(out, setting->string);
        write_cell(out, cJSON_IsString(setting) ? setting->valuestring : "");
        fputs("</tr>\n", out);
    }
    fputs("</table></details>\n", out);
}

void run_page_write(FILE *out, const metrics_runs *runs)
{
    fputs(head, out);
    write_colours(out);
    write_runs(out, runs);
    write_charts(out, runs);
    for (size_t i = 0; i < runs->count; i++) {
        const metrics_run *run = &runs->list[i];
        fputs("<h2>", out);
        chart_text(out, run->name);
        fputs("</h2>\n<div class=\"charts\"><div>\n", out);
        write_times(out, run);
        fputs("</div><div>\n", out);
        write_memory(out, run);
        write_devices(out, run);
        fputs("</div></div>\n", out);
        pipe_chart_write(out, run->pipeline);
        write_settings(out, run);
    }
    fputs("</body></html>\n", out);
}

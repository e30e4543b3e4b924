/* SPDX-License-Identifier: Apache-2.0
 *
 * chart: lines and stacked bars as inline SVG, in colours that the page's style sheet names.
 */
#ifndef TRAIN_CHART_H
#define TRAIN_CHART_H

#include <stddef.h>
#include <stdio.h>

enum { CHART_COLOURS = 8, CHART_POINTS = 400 };

typedef struct chart_line {
    const char *name;
    const double *x, *y; /* [count]; x grows */
    size_t count;
} chart_line;

/** A figure with one line a run. More than CHART_POINTS points are drawn as means of neighbours. */
void chart_lines(FILE *out, const char *title, const char *x_name, const chart_line *lines,
                 size_t count);

typedef struct chart_bar {
    char name[32];
    double parts[CHART_COLOURS];
} chart_bar;

/** A figure with one stacked bar a row, all of the same scale.
 *  @param parts  names of the parts, [part_count]
 *  @param unit   what the sum is written with: "s" */
void chart_bars(FILE *out, const char *title, const char *const *parts, int part_count,
                const char *unit, const chart_bar *bars, size_t count);

/** Text of the page: '<', '&', … are replaced. */
void chart_text(FILE *out, const char *text);

#endif

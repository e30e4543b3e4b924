/* SPDX-License-Identifier: Apache-2.0
 *
 * chart: lines and stacked bars as inline SVG, in colours that the page's style sheet names.
 */
#ifndef TRAIN_CHART_H
#define TRAIN_CHART_H

#include <stddef.h>
#include <stdio.h>

enum { CHART_COLOURS = 9, CHART_POINTS = 400 };

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

/** A stretch of a row. */
typedef struct chart_span {
    int part;   /* its colour and name */
    int number; /* written into it where there is room */
    double begin, end;
} chart_span;

typedef struct chart_row {
    char name[32], note[32]; /* in front of it and behind it */
    chart_span *spans;       /* [count] */
    size_t count;
} chart_row;

/** A figure with one row of spans below the other, all of the same scale from 0 to @p length.
 *  @param parts  names of the parts, [part_count]
 *  @param unit   of begin and end: "ms" */
void chart_spans(FILE *out, const char *title, const char *const *parts, int part_count,
                 const char *unit, double length, const chart_row *rows, size_t count);

/** Text of the page: '<', '&', … are replaced. */
void chart_text(FILE *out, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0
 * Co-ordinates of a fixed view that browsers scale. */
#include "chart.h"

#include <math.h>
#include <stdbool.h>

enum { WIDTH = 640, HEIGHT = 260, LEFT = 64, RIGHT = 12, TOP = 10, BOTTOM = 34 };
enum {
    BAR_HEIGHT = 16,
    BAR_STEP = 22,
    BAR_LEFT = 90,
    BAR_WIDTH = 440,
    NUMBER_WIDTH = 16,
    TICKS = 5,
    TICKS_MAX = 16
};

void chart_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            if ((unsigned char)*text >= ' ')
                fputc(*text, out);
        }
    }
}

static void begin_figure(FILE *out, const char *title, double height)
{
    fputs("<figure><figcaption>", out);
    chart_text(out, title);
    fprintf(out, "</figcaption>\n<svg viewBox=\"0 0 %d %g\" role=\"img\" aria-label=\"", WIDTH,
            height);
    chart_text(out, title);
    fputs("\">\n", out);
}

static void end_figure(FILE *out)
{
    fputs("</svg></figure>\n", out);
}

/* ---- Lines --------------------------------------------------------------------------------- */

typedef struct range {
    double low, high;
} range;

static void extend(range *over, const double *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            continue;
        over->low = fmin(over->low, values[i]);
        over->high = fmax(over->high, values[i]);
    }
}

/* @return a step of 1, 2 or 5 times a power of ten, so that about TICKS of them span the range. */
static double tick_step(const range *over)
{
    const double rough = (over->high - over->low) / TICKS;
    const double power = pow(10.0, floor(log10(rough)));
    const double lead = rough / power;
    return power * (lead < 1.5 ? 1.0 : lead < 3.5 ? 2.0 : lead < 7.5 ? 5.0 : 10.0);
}

static range range_of(const chart_line *lines, size_t count, bool of_x)
{
    range over = {INFINITY, -INFINITY};
    for (size_t i = 0; i < count; i++)
        extend(&over, of_x ? lines[i].x : lines[i].y, lines[i].count);
    if (!(over.low <= over.high))
        over = (range){0.0, 1.0};
    if (over.high - over.low <= 1e-12 * fabs(over.high)) {
        const double margin = over.high != 0.0 ? 0.5 * fabs(over.high) : 0.5;
        over = (range){over.low - margin, over.high + margin};
    }
    return over;
}

static double place_x(const range *x, double value)
{
    return LEFT + (value - x->low) / (x->high - x->low) * (WIDTH - LEFT - RIGHT);
}

static double place_y(const range *y, double value)
{
    return HEIGHT - BOTTOM - (value - y->low) / (y->high - y->low) * (HEIGHT - TOP - BOTTOM);
}

/* @return the tick of this number, from 0, at most the range's end; NAN: there are no more. Numbers
 * in a file may be so close that no step tells them apart. */
static double tick(const range *over, int number)
{
    const double step = tick_step(over), at = (ceil(over->low / step) + number) * step;
    return number < TICKS_MAX && at <= over->high ? at : (double)NAN;
}

static void draw_ticks(FILE *out, const range *x, const range *y)
{
    double at;
    for (int i = 0; !isnan(at = tick(y, i)); i++)
        fprintf(out,
                "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"end\" x=\"%d\" y=\"%.1f\">%.4g</text>\n",
                LEFT, WIDTH - RIGHT, place_y(y, at), place_y(y, at), LEFT - 6, place_y(y, at) + 4,
                at);
    for (int i = 0; !isnan(at = tick(x, i)); i++)
        fprintf(out, "<text class=\"mid\" x=\"%.1f\" y=\"%d\">%.6g</text>\n", place_x(x, at),
                HEIGHT - BOTTOM + 16, at);
}

/* Of those that are known; NAN if none is. */
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

static void draw_line(FILE *out, const chart_line *line, size_t number, const range *x,
                      const range *y)
{
    const size_t points = line->count < CHART_POINTS ? line->count : CHART_POINTS;
    fprintf(out, "<polyline class=\"line c%zu\" points=\"", number % CHART_COLOURS);
    for (size_t p = 0; p < points; p++) {
        const size_t begin = line->count * p / points, end = line->count * (p + 1) / points;
        const double at = place_x(x, mean(line->x + begin, end - begin));
        const double level = place_y(y, mean(line->y + begin, end - begin));
        if (isfinite(at) && isfinite(level))
            fprintf(out, "%.1f,%.1f ", at, level);
    }
    fputs("\"><title>", out);
    chart_text(out, line->name);
    fputs("</title></polyline>\n", out);
    if (points == 1 && isfinite(line->y[0]))
        fprintf(out, "<circle class=\"dot c%zu\" r=\"3\" cx=\"%.1f\" cy=\"%.1f\"/>\n",
                number % CHART_COLOURS, place_x(x, line->x[0]), place_y(y, line->y[0]));
}

void chart_lines(FILE *out, const char *title, const char *x_name, const chart_line *lines,
                 size_t count)
{
    const range x = range_of(lines, count, true), y = range_of(lines, count, false);
    begin_figure(out, title, HEIGHT);
    draw_ticks(out, &x, &y);
    fprintf(out, "<text class=\"end\" x=\"%d\" y=\"%d\">%s</text>\n", WIDTH - RIGHT, HEIGHT - 4,
            x_name);
    for (size_t i = 0; i < count; i++)
        draw_line(out, &lines[i], i, &x, &y);
    end_figure(out);
}

/* ---- Bars ---------------------------------------------------------------------------------- */

static double sum_of(const chart_bar *bar, int parts)
{
    double sum = 0.0;
    for (int p = 0; p < parts; p++)
        sum += bar->parts[p];
    return sum;
}

static void draw_bar(FILE *out, const chart_bar *bar, const char *const *parts, int part_count,
                     const char *unit, double scale, double top)
{
    double left = BAR_LEFT;
    fprintf(out, "<text class=\"end\" x=\"%d\" y=\"%.1f\">", BAR_LEFT - 6, top + 12);
    chart_text(out, bar->name);
    fputs("</text>\n", out);
    for (int p = 0; p < part_count; p++) {
        const double width = bar->parts[p] * scale;
        fprintf(out,
                "<rect class=\"f%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"><title>%s: "
                "%.4g %s</title></rect>\n",
                p, left, top, width, BAR_HEIGHT, parts[p], bar->parts[p], unit);
        left += width;
    }
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\">%.4g %s</text>\n", left + 6, top + 12,
            sum_of(bar, part_count), unit);
}

static void draw_keys(FILE *out, const char *const *parts, int part_count)
{
    fputs("<p class=\"keys\">", out);
    for (int p = 0; p < part_count; p++)
        fprintf(out, "<span><i class=\"b%d\"></i>%s</span> ", p, parts[p]);
    fputs("</p>\n", out);
}

void chart_bars(FILE *out, const char *title, const char *const *parts, int part_count,
                const char *unit, const chart_bar *bars, size_t count)
{
    double most = 0.0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, sum_of(&bars[i], part_count));
    begin_figure(out, title, (double)(TOP + BAR_STEP * (int)count));
    for (size_t i = 0; i < count; i++)
        draw_bar(out, &bars[i], parts, part_count, unit, most > 0.0 ? BAR_WIDTH / most : 0.0,
                 (double)(TOP + BAR_STEP * (int)i));
    end_figure(out);
    draw_keys(out, parts, part_count);
}

/* ---- Spans --------------------------------------------------------------------------------- */

static void draw_span(FILE *out, const chart_span *span, const char *name, const char *unit,
                      double scale, double top)
{
    const double left = BAR_LEFT + span->begin * scale, width = (span->end - span->begin) * scale;
    fprintf(out,
            "<rect class=\"f%d\" x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"><title>%s %d: "
            "%.4g %s from %.4g on</title></rect>\n",
            span->part, left, top, width, BAR_HEIGHT, name, span->number, span->end - span->begin,
            unit, span->begin);
    if (width >= NUMBER_WIDTH)
        fprintf(out, "<text class=\"mid in\" x=\"%.1f\" y=\"%.1f\">%d</text>\n", left + width / 2,
                top + 12, span->number);
}

/* The line behind the spans shows where nothing was done. */
static void draw_row(FILE *out, const chart_row *row, const char *const *parts, const char *unit,
                     double scale, double top)
{
    fprintf(out,
            "<text class=\"end\" x=\"%d\" y=\"%.1f\">%s</text><line class=\"grid\" x1=\"%d\" "
            "x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"%d\" y=\"%.1f\">%s</text>\n",
            BAR_LEFT - 6, top + 12, row->name, BAR_LEFT, BAR_LEFT + BAR_WIDTH,
            top + BAR_HEIGHT / 2.0, top + BAR_HEIGHT / 2.0, BAR_LEFT + BAR_WIDTH + 6, top + 12,
            row->note);
    for (size_t i = 0; i < row->count; i++)
        draw_span(out, &row->spans[i], parts[row->spans[i].part], unit, scale, top);
}

void chart_spans(FILE *out, const char *title, const char *const *parts, int part_count,
                 const char *unit, double length, const chart_row *rows, size_t count)
{
    begin_figure(out, title, (double)(TOP + BAR_STEP * (int)count));
    for (size_t r = 0; r < count; r++)
        draw_row(out, &rows[r], parts, unit, BAR_WIDTH / length, (double)(TOP + BAR_STEP * (int)r));
    end_figure(out);
    draw_keys(out, parts, part_count);
}

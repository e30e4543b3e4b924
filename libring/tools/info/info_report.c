/* SPDX-License-Identifier: Apache-2.0
 * Adds rows to a report, judges them, and computes the exit status from the verdicts. */
#include "info_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static info_row *add_row(report *r, const char *section, const char *name)
{
    info_row *rows = realloc(r->rows, (r->count + 1) * sizeof *rows);
    if (rows == NULL) {
        fputs("ringinfo: out of memory\n", stderr);
        exit(3);
    }
    r->rows = rows;
    info_row *row = &rows[r->count++];
    *row = (info_row){.section = section};
    snprintf(row->name, sizeof row->name, "%s", name);
    return row;
}

info_row *report_text(report *r, const char *section, const char *name, const char *format, ...)
{
    info_row *row = add_row(r, section, name);
    va_list args;
    va_start(args, format);
    vsnprintf(row->value, sizeof row->value, format, args);
    va_end(args);
    return row;
}

info_row *report_number(report *r, const char *section, const char *name, double number,
                        const char *unit)
{
    info_row *row = report_text(r, section, name, "%.10g%s%s", number, *unit ? " " : "", unit);
    row->is_number = true;
    row->number = number;
    return row;
}

info_row *report_bytes(report *r, const char *section, const char *name, double bytes)
{
    const double mib = bytes / (1 << 20), gib = mib / 1024;
    info_row *row = gib >= 1 ? report_text(r, section, name, "%.1f GiB", gib)
                             : report_text(r, section, name, "%.1f MiB", mib);
    row->is_number = true;
    row->number = bytes;
    return row;
}

void report_judge(report *r, verdict v, const char *format, ...)
{
    info_row *row = &r->rows[r->count - 1];
    va_list args;
    va_start(args, format);
    vsnprintf(row->advice, sizeof row->advice, format, args);
    va_end(args);
    row->verdict = v;
}

void report_command(report *r, const char *format, va_list args)
{
    info_row *row = &r->rows[r->count - 1];
    vsnprintf(row->command, sizeof row->command, format, args);
    text_make_printable(row->command, sizeof row->command);
}

size_t report_count(const report *r, verdict v)
{
    size_t count = 0;
    for (size_t i = 0; i < r->count; i++)
        count += r->rows[i].verdict == v;
    return count;
}

int report_status(const report *r)
{
    enum { GOOD = 0, WARNED = 1, WRONG = 3 };
    if (report_count(r, VERDICT_FAIL) > 0)
        return WRONG;
    return report_count(r, VERDICT_WARN) > 0 ? WARNED : GOOD;
}

void report_free(report *r)
{
    free(r->rows);
    *r = (report){0};
}

const char *verdict_name(verdict v)
{
    static const char *const names[] = {"", "ok", "warn", "fail"};
    return names[v];
}

/* SPDX-License-Identifier: Apache-2.0
 * Prints the report as text, with colours on a terminal. */
#include "info_report.h"

#include "settings.h"
#include "show.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAME_WIDTH = 18, SETTING_WIDTH = 22 };

#define RED "\033[31m"
#define YELLOW "\033[33m"
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

static const char *if_color(bool color, const char *code)
{
    return color ? code : "";
}

/* @return the code that begins the colour of a verdict, or "". */
static const char *show_color(verdict v, bool color)
{
    const bool bad = v == VERDICT_WARN || v == VERDICT_FAIL;
    return if_color(color && bad, v == VERDICT_FAIL ? RED : YELLOW);
}

/* @return the code that ends the colour of a verdict, or "". */
static const char *show_plain(verdict v, bool color)
{
    return if_color(color && (v == VERDICT_WARN || v == VERDICT_FAIL), PLAIN);
}

/* Prints the name of the section before its first row. */
static void show_section(const report *r, size_t index, bool color)
{
    const char *section = r->rows[index].section;
    if (index == 0 || strcmp(section, r->rows[index - 1].section) != 0)
        printf("%s%s%s\n", if_color(color, BOLD), section, if_color(color, PLAIN));
}

static void show_sum(const report *r)
{
    const size_t warnings = report_count(r, VERDICT_WARN), failures = report_count(r, VERDICT_FAIL);
    if (warnings + failures == 0)
        puts("\nNothing is wrong.");
    else
        printf("\n%zu failure%s, %zu warning%s; see FAIL and WARN above.\n", failures,
               plural(failures), warnings, plural(warnings));
}

void show_text(const report *r, bool color)
{
    for (size_t i = 0; i < r->count; i++) {
        const info_row *row = &r->rows[i];
        show_section(r, i, color);
        printf("  %-*s %s\n", NAME_WIDTH, row->name, row->value);
        if (row->verdict == VERDICT_WARN || row->verdict == VERDICT_FAIL)
            printf("  %-*s %s%s%s %s\n", NAME_WIDTH, "", show_color(row->verdict, color),
                   row->verdict == VERDICT_FAIL ? "FAIL" : "WARN", show_plain(row->verdict, color),
                   row->advice);
    }
    show_sum(r);
}

static void show_finding(const info_row *row, bool color)
{
    enum { WIDTH = 24 };
    static const char *const words[] = {"-", "OK", "WARN", "FAIL"};
    printf("  %-*s %s%-4s%s %s\n", WIDTH, row->name, show_color(row->verdict, color),
           words[row->verdict], show_plain(row->verdict, color), row->value);
    if (row->advice[0] != '\0')
        printf("  %-*s      %s\n", WIDTH, "", row->advice);
    if (row->command[0] != '\0')
        printf("  %-*s      $ %s\n", WIDTH, "", row->command);
}

void show_findings(const report *r, bool color)
{
    for (size_t i = 0; i < r->count; i++) {
        show_section(r, i, color);
        show_finding(&r->rows[i], color);
    }
    show_sum(r);
}

static void show_setting(const settings_row *row, bool color)
{
    const bool is_default = strncmp(row->source, "default", 7) == 0, is_set = *row->value != '\0';
    const bool is_seconds = strcmp(row->unit, "s") == 0 && strcasecmp(row->value, "none") != 0;
    printf("%s%-*s%s %s%s  (%s)\n", if_color(color, BOLD), SETTING_WIDTH, row->name,
           if_color(color, PLAIN), is_set ? row->value : "-", is_set && is_seconds ? " s" : "",
           row->source);
    printf("%-*s %s [%s", SETTING_WIDTH, "", row->help, row->unit);
    if (*row->fallback != '\0' && !is_default)
        printf("; default %s", row->fallback);
    if (row->nccl != NULL)
        printf("; also %s", row->nccl);
    puts("]");
}

void show_text_settings(bool color)
{
    size_t count;
    settings_row *rows = settings_rows(&count);
    puts("name                   value  (its source)");
    for (size_t i = 0; i < count; i++)
        show_setting(&rows[i], color);
    free(rows);
}

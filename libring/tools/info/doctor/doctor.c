/* SPDX-License-Identifier: Apache-2.0
 * The doctor of one host, and what it says. */
#include "doctor.h"

#include "checks.h"
#include "show.h"

#include <stdio.h>
#include <stdlib.h>

enum { GOOD = 0, WORTH_MENDING = 1, WRONG = 3, NAME_WIDTH = 24, DEFAULT_PKEY = 0xffff };

int doctor_status(const report *r)
{
    if (report_count(r, VERDICT_FAIL) > 0)
        return WRONG;
    return report_count(r, VERDICT_WARN) > 0 ? WORTH_MENDING : GOOD;
}

static const char *verdict_word(verdict v)
{
    static const char *const words[] = {"-", "OK", "WARN", "FAIL"};
    return words[v];
}

static void show_row(const info_row *row, bool color)
{
    printf("  %-*s %s%-4s%s %s\n", NAME_WIDTH, row->name, show_color(row->verdict, color),
           verdict_word(row->verdict), show_plain(row->verdict, color), row->value);
    if (row->advice[0] != '\0')
        printf("  %-*s      %s\n", NAME_WIDTH, "", row->advice);
    if (row->command[0] != '\0')
        printf("  %-*s      $ %s\n", NAME_WIDTH, "", row->command);
}

void doctor_show(const report *r, bool color)
{
    for (size_t i = 0; i < r->count; i++) {
        show_section(r, i, color);
        show_row(&r->rows[i], color);
    }
    show_sum(r);
}

static int examine_here(const doctor_wishes *w)
{
    static facts f;
    report r = {0};
    f = (facts){.root = w->root != NULL ? w->root : "",
                .seconds = w->seconds,
                .pkey = w->pkey != 0 ? (unsigned)w->pkey : DEFAULT_PKEY};
    facts_read(&f);
    checks_run(&f, &r);
    if (w->json)
        show_json_tree(doctor_json(&f, &r));
    else
        doctor_show(&r, w->color);
    const int status = doctor_status(&r);
    report_free(&r);
    return status;
}

int doctor_run(const doctor_wishes *w)
{
    return w->hosts != NULL || w->hostfile != NULL ? doctor_hosts(w) : examine_here(w);
}

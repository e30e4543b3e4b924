/* SPDX-License-Identifier: Apache-2.0
 *
 * report: ringinfo's findings as rows of section, name and value. Gathered once, shown as text or
 * JSON. A row may report a problem, with its remedy.
 */
#ifndef INFO_REPORT_H
#define INFO_REPORT_H

#include "base.h"

typedef enum verdict { VERDICT_NONE, VERDICT_OK, VERDICT_WARN, VERDICT_FAIL } verdict;

typedef struct info_row {
    const char *section; /* static */
    char name[64];
    char value[512];
    bool is_number; /* the value begins with a number, and its unit may follow */
    double number;
    verdict verdict;
    char advice[512];  /* the remedy, or the reason of the verdict; "": none */
    char command[512]; /* that fixes it; "": none */
} info_row;

typedef struct report {
    info_row *rows;
    size_t count;
} report;

/** Adds a row with a text. */
info_row *report_text(report *r, const char *section, const char *name, const char *format, ...)
    RING_PRINTF(4, 5);
/** Adds a row with a number and its unit ("" for none). */
info_row *report_number(report *r, const char *section, const char *name, double number,
                        const char *unit);
/** Adds a row with bytes, shown in MiB or GiB. */
info_row *report_bytes(report *r, const char *section, const char *name, double bytes);
/** Marks a problem in the latest row. @p format: the remedy. */
void report_judge(report *r, verdict v, const char *format, ...) RING_PRINTF(3, 4);
/** Gives the latest row a command that fixes it. */
void report_mend(report *r, const char *format, va_list args);
size_t report_count(const report *r, verdict v);
/** @return the exit status: 0 all is right, 1 something is worth mending, 3 something is wrong. */
int report_status(const report *r);
void report_free(report *r);

const char *verdict_name(verdict v);

/** Gathers the whole report. */
void gather_all(report *r);
void gather_machine(report *r);
void gather_gpus(report *r);
void gather_use(report *r);

/** Shows the report, or only the settings. @param color  may colour. */
void show_text(const report *r, bool color);
void show_text_settings(bool color);
void show_json(const report *r);
void show_json_settings(void);

#endif

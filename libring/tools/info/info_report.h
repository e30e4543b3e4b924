/* SPDX-License-Identifier: Apache-2.0
 *
 * info_report: holds ringinfo's findings as rows of section, name and value, which are gathered
 * once and shown as text or JSON. A row may report a problem and its remedy.
 */
#ifndef INFO_REPORT_H
#define INFO_REPORT_H

#include "base.h"

typedef enum verdict { VERDICT_NONE, VERDICT_OK, VERDICT_WARN, VERDICT_FAIL } verdict;

typedef struct info_row {
    const char *section; /* valid as long as the report */
    char name[64];
    char value[512];
    bool is_number; /* the value is a number, possibly with a unit */
    double number;
    verdict verdict;
    char advice[512];  /* the remedy, or the reason for the verdict; may be "" */
    char command[512]; /* the command that fixes the problem; may be "" */
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
/** Gives the latest row a verdict. @p format: the remedy, or the reason. */
void report_judge(report *r, verdict v, const char *format, ...) RING_PRINTF(3, 4);
/** Adds to the latest row the command that fixes the problem. */
void report_command(report *r, const char *format, va_list args);
/** @return the number of rows with a verdict. */
size_t report_count(const report *r, verdict v);
/** @return the exit status: 0 if nothing is wrong, 1 if there are warnings, 3 if there are
 *  failures. */
int report_status(const report *r);
void report_free(report *r);

/** @return "ok", "warn", "fail", or "" for no verdict. */
const char *verdict_name(verdict v);

/** Adds all sections to the report. */
void gather_all(report *r);
/** Adds the host, CPUs, memory, limits, network and devices. */
void gather_machine(report *r);
/** Adds the GPUs that NVIDIA's driver lists. */
void gather_gpus(report *r);
/** Adds the launcher, the settings, and the transports and kernels that libring would use. */
void gather_use(report *r);

/** Prints the report as text. @param color  with colours. */
void show_text(const report *r, bool color);
/** Prints all settings, two lines each. */
void show_text_settings(bool color);
/** Prints the report and the settings as one object of JSON. */
void show_json(const report *r);
/** Prints all settings as a list of JSON. */
void show_json_settings(void);

#endif

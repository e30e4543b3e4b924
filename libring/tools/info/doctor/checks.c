/* SPDX-License-Identifier: Apache-2.0
 * Runs tables of checks and adds the rows that checks report. */
#include "checks.h"

#include <stdio.h>
#include <string.h>

const char *remedy_for(const remedy *table, const char *why)
{
    while (table->reason != NULL && strstr(why, table->reason) == NULL)
        table++;
    return table->command;
}

void checks_run(const check *table, const facts *f, report *r)
{
    for (const check *k = table; k->judge != NULL; k++) {
        checking c = {.f = f, .r = r, .section = k->section, .name = k->name};
        if (k->of == OF_HOST)
            k->judge(&c);
        for (c.port = f->ports; c.port < f->ports + f->port_count; c.port++) {
            c.subject = c.port->name;
            if (k->of == OF_PORTS || (k->of != OF_HOST && c.port->is_active &&
                                      (k->of == OF_ACTIVE_PORTS || c.port->is_roce)))
                k->judge(&c);
        }
    }
}

/* Adds a row that is named after the subject and the check. */
static void add(checking *c, verdict v, const char *format, va_list args)
{
    char name[64], value[512];
    if (c->subject == NULL)
        snprintf(name, sizeof name, "%s", c->name);
    else
        snprintf(name, sizeof name, "%.40s %.20s", c->subject, c->name);
    vsnprintf(value, sizeof value, format, args);
    text_make_printable(value, sizeof value);
    report_text(c->r, c->section, name, "%s", value);
    report_judge(c->r, v, "%s", "");
}

void check_found(checking *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(c, VERDICT_OK, format, args);
    va_end(args);
}

void check_nothing(checking *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    add(c, VERDICT_NONE, format, args);
    va_end(args);
}

void check_judge(checking *c, verdict v, const char *format, ...)
{
    char why[512];
    va_list args;
    va_start(args, format);
    vsnprintf(why, sizeof why, format, args);
    va_end(args);
    text_make_printable(why, sizeof why);
    report_judge(c->r, v, "%s", why);
}

void check_command(checking *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    report_command(c->r, format, args);
    va_end(args);
}

__attribute__((format(printf, 4, 0))) static void blame(checking *c, verdict v, const char *why,
                                                        const char *format, va_list args)
{
    check_judge(c, v, "%s", why);
    report_command(c->r, format, args);
}

void check_warn(checking *c, const char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    blame(c, VERDICT_WARN, why, format, args);
    va_end(args);
}

void check_fail(checking *c, const char *why, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    blame(c, VERDICT_FAIL, why, format, args);
    va_end(args);
}

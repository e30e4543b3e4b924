/* SPDX-License-Identifier: Apache-2.0
 *
 * checks: runs the doctor's checks. A check is a row of a table; it examines facts and adds a row
 * to the report for each thing that it examines: the finding and, if there is a problem, the reason
 * and the command that fixes it.
 */
#ifndef DOCTOR_CHECKS_H
#define DOCTOR_CHECKS_H

#include "facts.h"
#include "info_report.h"

/** A check that is running, and the report to which it adds rows. */
typedef struct checking {
    const facts *f;
    report *r;
    const char *section, *name;
    const char *subject;   /* the examined object, such as "mlx5_0:1"; NULL: the host */
    const fact_port *port; /* the examined port, if the check is for ports */
} checking;

/** The objects for each of which a check is called. */
typedef enum check_of { OF_HOST, OF_PORTS, OF_ACTIVE_PORTS, OF_ACTIVE_ROCE } check_of;

typedef struct check {
    check_of of;
    const char *section, *name;
    void (*judge)(checking *c);
} check;

/** Runs the checks of a table, which a row of zeros ends. */
void checks_run(const check *table, const facts *f, report *r);

/** Adds a row with the value that was found (@p format). Its verdict is OK until check_judge(). */
void check_found(checking *c, const char *format, ...) RING_PRINTF(2, 3);
/** Adds a row about something that does not exist or cannot be judged. */
void check_nothing(checking *c, const char *format, ...) RING_PRINTF(2, 3);
/** Judges the latest row. @p format: the reason. */
void check_judge(checking *c, verdict v, const char *format, ...) RING_PRINTF(3, 4);
/** Adds to the latest row the command that fixes the problem. */
void check_command(checking *c, const char *format, ...) RING_PRINTF(2, 3);
/** Gives the latest row the verdict WARN for the reason @p why, and adds the command (@p
 *  format). */
void check_warn(checking *c, const char *why, const char *format, ...) RING_PRINTF(3, 4);
/** Does the same with the verdict FAIL. */
void check_fail(checking *c, const char *why, const char *format, ...) RING_PRINTF(3, 4);

/** A row of a table of remedies: the command that fixes problems whose reason contains the text
 *  `reason`. */
typedef struct remedy {
    const char *reason, *command;
} remedy;
/** @return the command of the first row whose text is in @p why; the last row has no text and
 *  always matches. */
const char *remedy_for(const remedy *table, const char *why);

#define REMEDY_MEMLOCK \
    "ulimit -l unlimited   # on the ranks' hosts; permanently: memlock in " \
    "/etc/security/limits.conf, " \
    "LimitMEMLOCK=infinity for services"

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * checks: what the doctor judges. A check is a row of a table; it looks at facts, and adds a row to
 * the report for each thing that it looks at: what was found, and where that is not right, why, and
 * the command that mends it.
 */
#ifndef DOCTOR_CHECKS_H
#define DOCTOR_CHECKS_H

#include "facts.h"
#include "info_report.h"

/** The report, and the check that adds to it. */
typedef struct checking {
    const facts *f;
    report *r;
    const char *section, *name;
    const char *subject;   /* of several that the check looks at: "mlx5_0:1"; NULL: there is one */
    const fact_port *port; /* of a check of ports */
} checking;

typedef enum check_of { OF_HOST, OF_PORTS, OF_ACTIVE_PORTS, OF_ACTIVE_ROCE } check_of;

typedef struct check {
    check_of of; /* called once, or for each of these */
    const char *section, *name;
    void (*judge)(checking *c);
} check;

/** Runs the checks of a table, which a row of zeros ends. */
void checks_run(const check *table, const facts *f, report *r);

/** Adds a row, which is right unless judged otherwise. */
void check_found(checking *c, const char *format, ...) RING_PRINTF(2, 3);
/** Adds a row about what is not there, or cannot be judged. */
void check_nothing(checking *c, const char *format, ...) RING_PRINTF(2, 3);
/** Judges the latest row. @p format: why. */
void check_judge(checking *c, verdict v, const char *format, ...) RING_PRINTF(3, 4);
/** The command that mends what the latest row says. */
void check_mend(checking *c, const char *format, ...) RING_PRINTF(2, 3);
/** Both: @p why, and the command. */
void check_warn(checking *c, const char *why, const char *format, ...) RING_PRINTF(3, 4);
void check_fail(checking *c, const char *why, const char *format, ...) RING_PRINTF(3, 4);

/** The command for a reason, which is known by a part of its text. */
typedef struct remedy {
    const char *reason, *command;
} remedy;
/** @return the command of the first row that fits @p why; the last row, without a reason, always
 * does. */
const char *remedy_for(const remedy *table, const char *why);

#define REMEDY_MEMLOCK \
    "ulimit -l unlimited   # where ranks run; for good: memlock in /etc/security/limits.conf, " \
    "LimitMEMLOCK=infinity for services"

#endif

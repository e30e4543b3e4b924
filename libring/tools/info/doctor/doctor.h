/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: `ringinfo doctor`. Reads facts, judges them by a table of checks, and shows what is not
 * right with the command that mends it; of several hosts also what differs between them, and how
 * they reach each other.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include "facts.h"
#include "info_report.h"

#include <cjson/cJSON.h>

typedef struct doctor_wishes {
    const char *root;                /* NULL: this machine            */
    const char *hosts, *hostfile;    /* of several; NULL: here        */
    const char *remote_ringrun;      /* path there; NULL: as here     */
    int ssh_port, master_port, pkey; /* 0: not said                */
    double seconds;                  /* between readings of counters  */
    bool json, color;
} doctor_wishes;

/** @return the exit status: 0 all is right, 1 something is worth mending, 3 something is wrong. */
int doctor_run(const doctor_wishes *w);

/* ---- Parts of it */

int doctor_status(const report *r);
/** The report with its verdicts, for people. */
void doctor_show(const report *r, bool color);
/** What other hosts are told by `ringinfo doctor --json`. */
cJSON *doctor_json(const facts *f, const report *r);
cJSON *doctor_findings(const report *r);

/** What should be the same on all hosts, by names that compare.c knows. */
cJSON *doctor_alike(const facts *f);
/** Counters that should stand still, by "mlx5_0:1 symbol_error". */
cJSON *doctor_counters(const facts *f);

/** `ringinfo doctor --hosts`. @return the exit status. */
int doctor_hosts(const doctor_wishes *w);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: `ringinfo doctor`. Reads facts, judges them by tables of checks, and shows what is not
 * right with the command that mends it.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include <stdbool.h>

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

#endif

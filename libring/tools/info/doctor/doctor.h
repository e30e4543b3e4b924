/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor: implements `ringinfo doctor`. It reads facts, judges them with tables of checks, and
 * shows each problem with the command that fixes it.
 */
#ifndef DOCTOR_DOCTOR_H
#define DOCTOR_DOCTOR_H

#include <stdbool.h>

typedef struct doctor_wishes {
    const char *root;             /* read instead of "/"; NULL: "/" */
    const char *hosts, *hostfile; /* values of --hosts and --hostfile; both NULL: this host */
    const char
        *remote_ringrun; /* path of ringrun on the other hosts; NULL: the same path as here */
    int ssh_port, master_port, pkey; /* 0: not given                  */
    double seconds;                  /* between the two readings of the counters */
    bool json, color;
} doctor_wishes;

/** Runs the doctor. @return the exit status: 0 if nothing is wrong, 1 if there are warnings, 3 if
 *  there are failures. */
int doctor_run(const doctor_wishes *w);

#endif

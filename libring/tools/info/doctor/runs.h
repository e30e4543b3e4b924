/* SPDX-License-Identifier: Apache-2.0
 * runs: runs commands in parallel through ringrun, with a deadline, and collects their output. */
#ifndef DOCTOR_RUNS_H
#define DOCTOR_RUNS_H

#include "checks.h"
#include "doctor.h"
#include "grow.h"

typedef struct run {
    texts command;
    char *out, *err;    /* its output and its errors */
    double began, done; /* times of its start and end, wall clock */
    int code;           /* exit code; -1: killed, -2: not started */
    pid_t pid;
    int fds[2]; /* the files that it writes output and errors to */
} run;

/** Begins a command line with this installation's ringrun and the user's options for ssh.
 *  @param hosts  the value of ringrun's option -H. */
void runs_begin(run *r, const doctor_wishes *w, const char *hosts);
/** @return a host's name as an item of the list for -H, in which IPv6 addresses are in brackets. */
const char *runs_host(const char *name, char out[280]);
/** Adds one of libring's programs to the command, with its path on the other hosts. */
void runs_add_program(run *r, const doctor_wishes *w, const char *name);

/** Runs all commands at the same time. After @p seconds, kills the process groups of the commands
 *  that have not ended. */
void runs_all(run *runs, size_t count, double seconds);
/** Frees the commands and their output. */
void runs_free(run *runs, size_t count);

/** Describes a failure: the first line of the errors, or how the command ended. */
void runs_why(const run *r, char *out, size_t size);
/** @return the command that fixes a known reason why ranks could not be started, else @p other. */
const char *runs_remedy(const char *why, const char *other);

#endif

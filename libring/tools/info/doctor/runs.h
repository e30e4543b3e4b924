/* SPDX-License-Identifier: Apache-2.0
 * runs: commands that the doctor has ringrun start, side by side, and what they print. */
#ifndef DOCTOR_RUNS_H
#define DOCTOR_RUNS_H

#include "checks.h"
#include "doctor.h"
#include "grow.h"

typedef struct run {
    texts command;
    char *out, *err;    /* all of it */
    double began, done; /* by the wall clock               */
    int code;           /* exit code; -1: killed, -2: not started */
    pid_t pid;
    int fds[2]; /* files of its output and errors */
} run;

/** Begins a command line: this installation's ringrun with the user's options for ssh.
 *  @param hosts  for its -H. */
void runs_begin(run *r, const doctor_wishes *w, const char *hosts);
/** A host's name for such a list: IPv6 addresses in brackets. */
const char *runs_host(const char *name, char out[280]);
/** The path of one of libring's programs, there. */
void runs_add_program(run *r, const doctor_wishes *w, const char *name);

/** Runs them all until they end; who has not by then is killed, with what it started. */
void runs_all(run *runs, size_t count, double seconds);
void runs_free(run *runs, size_t count);

/** First line of the errors, else what became of it. */
void runs_why(const run *r, char *out, size_t size);
/** The command for a reason why ranks could not be started, or for any @p other. */
const char *runs_remedy(const char *why, const char *other);

#endif

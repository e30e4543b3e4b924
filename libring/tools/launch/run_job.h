/* SPDX-License-Identifier: Apache-2.0
 * run_job: runs one job, from the options to the exit code. */
#ifndef LAUNCH_RUN_JOB_H
#define LAUNCH_RUN_JOB_H

#include "run_options.h"

/** Runs the job, or prints its commands for --dry-run. @return the exit code of ringrun. */
int run_job(const options *o);

#endif

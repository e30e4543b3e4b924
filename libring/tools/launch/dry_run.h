/* SPDX-License-Identifier: Apache-2.0
 * dry_run: prints the commands that a job would start, in the syntax of a shell (--dry-run). */
#ifndef LAUNCH_DRY_RUN_H
#define LAUNCH_DRY_RUN_H

#include "setup.h"

/** Prints the environment and the command of every rank, without the secret. Starts nothing. */
void dry_run_print(const setup *s, const options *o);

#endif

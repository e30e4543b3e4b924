/* SPDX-License-Identifier: Apache-2.0
 * dry_run: prints the commands that would be started, in the syntax of a shell. */
#ifndef LAUNCH_DRY_RUN_H
#define LAUNCH_DRY_RUN_H

#include "setup.h"

/** Prints environment and command of every rank, without the secret; starts none. */
void dry_run_print(const setup *s, const options *o);

#endif

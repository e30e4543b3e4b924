/* SPDX-License-Identifier: Apache-2.0
 * args_check: options as they were typed, before argp sees them. */
#ifndef RING_ARGS_CHECK_H
#define RING_ARGS_CHECK_H

#include "args_table.h"

/** Looks at the options, so that a wrong one gets a good answer, before argp does; spells them as
 *  their rows do. */
void args_check(const args_table *table, int argc, char **argv);

#endif

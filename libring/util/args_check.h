/* SPDX-License-Identifier: Apache-2.0
 * args_check: checks the options of a command line before argp parses them, because argp's own
 * messages do not suggest an option that the user may mean. */
#ifndef RING_ARGS_CHECK_H
#define RING_ARGS_CHECK_H

#include "args_table.h"

/** Ends the program with a message if an option is unknown or lacks its value. Changes the other
 *  options in @p argv to the spelling of their rows. */
void args_check(const args_table *table, int argc, char **argv);

#endif

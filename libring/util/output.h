/* SPDX-License-Identifier: Apache-2.0
 *
 * output: whether what a program has written has arrived. A full disk shows only when a stream is
 * flushed or closed; results that are lost must not look like success.
 */
#ifndef RING_OUTPUT_H
#define RING_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/** From now on the end of the program, --help included, checks standard output: a failure is one
 *  line on standard error and the exit status @p status. */
void output_check_at_exit(int status);

/** Closes @p file, called @p name in messages; NULL is fine.
 *  @return false, after one line on standard error, if anything written to it is lost. */
bool output_close(FILE *file, const char *name);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * output: whether what a program has written has arrived. A full disk shows only when a
 * stream is flushed or closed; figures that are lost must not look like success.
 */
#ifndef PERF_OUTPUT_H
#define PERF_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/** Flush or close @p file, called @p name in the message of @p program. Closing NULL is fine.
 *  @return false, after one line on standard error, if anything written to it is lost. */
bool output_flush(FILE *file, const char *program, const char *name);
bool output_close(FILE *file, const char *program, const char *name);

#endif

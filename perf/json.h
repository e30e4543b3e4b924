/* SPDX-License-Identifier: Apache-2.0
 *
 * json: writes the file of --json, which has one line with one object for each measurement. So a
 * run that ends early leaves complete lines.
 */
#ifndef PERF_JSON_H
#define PERF_JSON_H

#include "measure.h"
#include <stdio.h>

/** Writes the line of one measurement, and flushes the file. */
void json_result(FILE *out, const perf_case *c, const perf_result *result);

/** Write a string in quotes, and a number (null if it is not finite). */
void json_string(FILE *out, const char *text);
void json_number(FILE *out, double value);

#endif

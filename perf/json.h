/* SPDX-License-Identifier: Apache-2.0
 *
 * json: the file of --json, one object a line and a line a measurement, so that a run that
 * stops half-way leaves whole lines.
 */
#ifndef PERF_JSON_H
#define PERF_JSON_H

#include "measure.h"
#include <stdio.h>

void json_result(FILE *out, const perf_case *c, const perf_result *result);

/** A name in quotes, and a number (null if it is not finite). */
void json_string(FILE *out, const char *text);
void json_number(FILE *out, double value);

#endif

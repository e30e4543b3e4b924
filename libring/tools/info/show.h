/* SPDX-License-Identifier: Apache-2.0
 * show: shared parts of reports. */
#ifndef INFO_SHOW_H
#define INFO_SHOW_H

#include "info_report.h"

#include <cjson/cJSON.h>

/** All rows with their verdicts, reasons and commands, for people. */
void show_findings(const report *r, bool color);
/** Prints a tree and frees it; NULL, out of memory, ends the program. */
void show_json_tree(cJSON *json);

#endif

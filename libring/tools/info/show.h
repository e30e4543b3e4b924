/* SPDX-License-Identifier: Apache-2.0
 * show: prints findings and JSON; ringinfo's report and the doctor's share these functions. */
#ifndef INFO_SHOW_H
#define INFO_SHOW_H

#include "info_report.h"

#include <cjson/cJSON.h>

/** Prints all rows with their verdicts, reasons and commands as text. */
void show_findings(const report *r, bool color);
/** Prints @p json and frees it. Ends the program if @p json is NULL, because memory has run out. */
void show_json_tree(cJSON *json);

#endif

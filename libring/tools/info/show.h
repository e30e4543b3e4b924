/* SPDX-License-Identifier: Apache-2.0
 * show: shared parts of reports. */
#ifndef INFO_SHOW_H
#define INFO_SHOW_H

#include "info_report.h"

#include <cjson/cJSON.h>

/** Escape sequences around a verdict; "" unless @p color. */
const char *show_color(verdict v, bool color);
const char *show_plain(verdict v, bool color);
/** The heading before row @p index, if a section begins there. */
void show_section(const report *r, size_t index, bool color);
/** The last line. */
void show_sum(const report *r);
/** Prints a tree and frees it; NULL, out of memory, ends the program. */
void show_json_tree(cJSON *json);

#endif

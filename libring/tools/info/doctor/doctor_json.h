/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_json: writes and reads the output of `ringinfo doctor --json`, by which the doctor of one
 * host informs the doctor of several: its findings, values that should be equal on all hosts
 * ("alike"), and counters. A list is words separated by blanks.
 */
#ifndef DOCTOR_JSON_H
#define DOCTOR_JSON_H

#include "facts.h"
#include "info_report.h"

#include <cjson/cJSON.h>

cJSON *doctor_json(const facts *f, const report *r);
cJSON *doctor_findings(const report *r);

/** @return a member of a part of a host's answer, such as ("alike", "mtu"), or NULL. */
const cJSON *told_item(const cJSON *told, const char *part, const char *name);
/** @return the text of such a member, or NULL. */
const char *told_text(const cJSON *told, const char *part, const char *name);
/** @return true if the list has the word. */
bool words_have(const char *list, const char *word, size_t length);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_json: writes and reads the output of `ringinfo doctor --json`. `ringinfo doctor --hosts`
 * runs this command on each host and reads the findings, the values that should be equal on all
 * hosts ("alike"), and the counters. A list of values is one text, of words separated by blanks.
 */
#ifndef DOCTOR_JSON_H
#define DOCTOR_JSON_H

#include "facts.h"
#include "info_report.h"

#include <cjson/cJSON.h>

/** @return the whole output for this host; the caller deletes it. */
cJSON *doctor_json(const facts *f, const report *r);
/** @return the rows of a report as a list of objects; the caller deletes it. */
cJSON *doctor_findings(const report *r);

/** @return a member of a part of a host's answer, such as ("alike", "mtu"), or NULL. */
const cJSON *told_item(const cJSON *told, const char *part, const char *name);
/** @return the text of such a member; NULL if it is missing or not a text. */
const char *told_text(const cJSON *told, const char *part, const char *name);
/** @return true if the list has the word, the first @p length characters of @p word. */
bool words_have(const char *list, const char *word, size_t length);

#endif

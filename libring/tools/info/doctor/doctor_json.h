/* SPDX-License-Identifier: Apache-2.0
 *
 * doctor_json: what the doctor of one host tells others, `ringinfo doctor --json`: its findings,
 * what should be the same on all hosts ("alike"), and counters. Lists of words have blanks between
 * them.
 */
#ifndef DOCTOR_JSON_H
#define DOCTOR_JSON_H

#include "facts.h"
#include "info_report.h"

#include <cjson/cJSON.h>

cJSON *doctor_json(const facts *f, const report *r);
cJSON *doctor_findings(const report *r);

/** A member of a part of what a host told: ("alike", "mtu"). @return NULL: there is none. */
const cJSON *told_item(const cJSON *told, const char *part, const char *name);
/** The same if it is a text. */
const char *told_text(const cJSON *told, const char *part, const char *name);
/** @return true if the list has the word. */
bool words_have(const char *list, const char *word, size_t length);

#endif

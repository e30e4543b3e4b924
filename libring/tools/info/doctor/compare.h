/* SPDX-License-Identifier: Apache-2.0
 * compare: reports the differences between hosts that should have equal settings and hardware. */
#ifndef DOCTOR_COMPARE_H
#define DOCTOR_COMPARE_H

#include "checks.h"

#include <cjson/cJSON.h>

/** A host, and its answer to the question for its findings. */
typedef struct doctor_host {
    const char *name;
    cJSON *told;        /* its answer to `ringinfo doctor --json`; NULL: no answer  */
    double began, done; /* this host's clock before the question and after the answer */
} doctor_host;

/** Adds a row for each value that should be the same on all hosts. Ignores hosts without an answer.
 */
void compare_hosts(const doctor_host *hosts, size_t count, report *r);
/** Adds a row with the counters of a host that have risen since its first answer.
 *  @param after  its second answer. */
void compare_counters(const doctor_host *h, const cJSON *after, report *r);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * binding: on which cores of its host a rank runs. A pure function of the job, the host's
 * share of it, and how many cores there are.
 */
#ifndef LAUNCH_BINDING_H
#define LAUNCH_BINDING_H

#include "job.h"

/** The variables that set the number of a rank's threads. */
enum { BINDING_VARIABLES = 3 };
extern const char *const binding_variables[BINDING_VARIABLES];
/** @return the value of one for the ranks of @p s: exported, or of their host's environment if they
 *  are here; NULL: it has none. */
const char *binding_threads(const job *j, const share *s, size_t variable);

/** Cores first … first + count - 1 of those that ringrun may use. */
typedef struct core_range {
    size_t first, count; /* count 0: any core */
} core_range;

/** The cores of rank first_rank + @p local of @p s. @param cores  how many there are. */
core_range binding_of(const job *j, const share *s, int local, size_t cores);

#endif

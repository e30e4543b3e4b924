/* SPDX-License-Identifier: Apache-2.0
 *
 * binding: chooses the cores of its host on which a rank runs, from the job, the ranks of the host,
 * and the number of cores alone.
 */
#ifndef LAUNCH_BINDING_H
#define LAUNCH_BINDING_H

#include "job.h"

/** The variables that set the number of a rank's threads. */
enum { BINDING_VARIABLES = 3 };
extern const char *const binding_variables[BINDING_VARIABLES];
/** @return the value of such a variable for the ranks of @p s: the exported value, or the one of
 *  this environment if the ranks run on this host; NULL if the variable is not set. */
const char *binding_threads(const job *j, const share *s, size_t variable);

/** The cores first to first + count - 1 of the list of cores that ringrun may use. */
typedef struct core_range {
    size_t first, count; /* count 0: the rank is not bound */
} core_range;

/** @return the cores of rank first_rank + @p local of @p s.
 *  @param cores  number of cores that ringrun may use on the host. */
core_range binding_of(const job *j, const share *s, int local, size_t cores);

#endif

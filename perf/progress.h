/* SPDX-License-Identifier: Apache-2.0
 *
 * progress: shows a line on standard error while a measurement takes long, if standard error is a
 * terminal. The line is erased before the next row is printed.
 */
#ifndef PERF_PROGRESS_H
#define PERF_PROGRESS_H

#include "collective.h"

/** The state of one rank's line; it is not static, because ranks may be threads of one process. */
typedef struct progress {
    double shown_at; /* time of the latest line (or of the first call), microseconds; 0: none yet */
    bool visible;
} progress;

/** Shows that @p done of @p calls are complete, unless the latest line is less than a second
 *  old. */
void progress_show(progress *p, const perf_case *c, size_t done, size_t calls);
/** Erases the line. */
void progress_clear(progress *p);

#endif

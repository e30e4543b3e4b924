/* SPDX-License-Identifier: Apache-2.0
 *
 * progress: one line on a terminal's standard error while a measurement takes long. It goes
 * before the next row is printed, and never appears in a file or a pipe.
 */
#ifndef PERF_PROGRESS_H
#define PERF_PROGRESS_H

#include "collective.h"

/** One rank's line: ranks may be threads of one process. */
typedef struct progress {
    double shown_at; /* microseconds, 0: nothing was measured yet */
    bool visible;
} progress;

void progress_show(progress *p, const perf_case *c, size_t done, size_t calls);
void progress_clear(progress *p);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * progress: one line on a terminal's standard error while a measurement takes long. It goes
 * before the next row is printed, and never appears in a file or a pipe.
 */
#ifndef PERF_PROGRESS_H
#define PERF_PROGRESS_H

#include "collective.h"

void progress_show(const perf_case *c, size_t done, size_t calls);
void progress_clear(void);

#endif

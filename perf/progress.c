/* SPDX-License-Identifier: Apache-2.0
 *
 * progress: prints the progress line at most once per second.
 */
#include "progress.h"
#include "stopwatch.h"
#include "words.h"

#include <stdio.h>
#include <unistd.h>

#define EVERY_US 1e6

void progress_show(progress *p, const perf_case *c, size_t done, size_t calls)
{
    const double now = stopwatch_us();
    if (p->shown_at == 0)
        p->shown_at = now;
    if (now - p->shown_at < EVERY_US)
        return;
    p->shown_at = now;
    if (!isatty(STDERR_FILENO))
        return;
    p->visible = true;
    fprintf(stderr, "\r\033[K%s, %zu bytes, %s: %zu of %zu call%s", c->collective->name,
            perf_case_bytes(c), c->in_place ? "in place" : "out of place", done, calls,
            plural(calls));
    fflush(stderr);
}

void progress_clear(progress *p)
{
    if (!p->visible)
        return;
    fputs("\r\033[K", stderr);
    fflush(stderr);
    p->visible = false;
}

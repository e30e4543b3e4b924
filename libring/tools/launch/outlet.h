/* SPDX-License-Identifier: Apache-2.0
 *
 * outlet: a descriptor that many write to, whole lines each. What its reader does not take
 * waits here and never blocks the program; who fills it asks outlet_full() first.
 */
#ifndef LAUNCH_OUTLET_H
#define LAUNCH_OUTLET_H

#include "poll_set.h"

typedef struct outlet {
    int fd;
    bytes waiting;
    const void *open; /* who wrote the line that has no end yet, NULL: nobody         */
    int error;        /* errno of the write that failed, 0: none. Then nothing is kept */
} outlet;

/** Adds @p data; @p prefix comes before it unless it goes on with the owner's own line.
 *  Another owner's open line is ended first. */
void outlet_put(outlet *o, const void *owner, const char *prefix, const char *data, size_t count);
/** @return true when so much waits that no more should be read for it. */
bool outlet_full(const outlet *o);
void outlet_watch(outlet *o, poll_set *set);
/** Writes what can be written at once. */
void outlet_write(void *context);

#endif

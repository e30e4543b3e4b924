/* SPDX-License-Identifier: Apache-2.0
 *
 * outlet: lets several writers share a descriptor, each writing whole lines. Bytes that the reader
 * has not accepted yet are queued here and never block the program; writers check outlet_full()
 * first.
 */
#ifndef LAUNCH_OUTLET_H
#define LAUNCH_OUTLET_H

#include "poll_set.h"

typedef struct outlet {
    int fd;
    bytes waiting;
    const void *open; /* the writer of the unfinished line, NULL: none */
    int error;        /* errno of the write that failed, 0: none. Then no bytes are kept */
} outlet;

/** Adds @p data; @p prefix comes before it unless it goes on with the owner's own line.
 *  Another owner's open line is ended first. */
void outlet_put(outlet *o, const void *owner, const char *prefix, const char *data, size_t count);
/** @return true when so many bytes wait that no more should be read for it. */
bool outlet_full(const outlet *o);
void outlet_watch(outlet *o, poll_set *set);
/** Writes without blocking. */
void outlet_write(void *context);

#endif

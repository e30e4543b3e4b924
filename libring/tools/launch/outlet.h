/* SPDX-License-Identifier: Apache-2.0
 *
 * outlet: lets several writers share a descriptor without mixing their lines. Bytes are queued
 * until the descriptor accepts them, so that writing never blocks the program. Writers check
 * outlet_full() before they produce more.
 */
#ifndef LAUNCH_OUTLET_H
#define LAUNCH_OUTLET_H

#include "poll_set.h"

typedef struct outlet {
    int fd;
    bytes waiting;
    const void *open; /* owner of the unfinished line; NULL: the last line is complete */
    int error;        /* errno of a failed write, after which all bytes are discarded; 0: none */
} outlet;

/** Adds at most one line, or a part of it. An unfinished line of another owner is ended first.
 *  @param owner   identifies the writer.
 *  @param prefix  is put before @p data, unless @p data continues an unfinished line of this owner.
 */
void outlet_put(outlet *o, const void *owner, const char *prefix, const char *data, size_t count);
/** @return true when 1 MiB or more is queued, so that the caller should not add more. */
bool outlet_full(const outlet *o);
/** Adds the descriptor to the set if bytes are queued. */
void outlet_watch(outlet *o, poll_set *set);
/** Writes as many bytes as the descriptor accepts without blocking. @param context  the outlet. */
void outlet_write(void *context);

#endif

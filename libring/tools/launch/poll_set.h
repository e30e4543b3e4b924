/* SPDX-License-Identifier: Apache-2.0
 *
 * poll_set: the descriptors that ringrun waits for, each with a function that handles it. The set
 * is built again for each wait, so that a part of the program can omit a descriptor for some time:
 * while the terminal is slow, the output of ranks is not read.
 */
#ifndef LAUNCH_POLL_SET_H
#define LAUNCH_POLL_SET_H

#include "grow.h"

#include <poll.h>

typedef struct poll_set {
    struct pollfd *fds;
    struct poll_entry *entries;
    size_t count, room;
} poll_set;

/** Makes the set empty, for the next wait. */
void poll_set_clear(poll_set *set);
/** Adds a descriptor. When it has one of @p events or an error, poll_set_run() calls @p handle with
 *  @p context. */
void poll_set_add(poll_set *set, int fd, short events, void (*handle)(void *context),
                  void *context);
/** Waits for the descriptors, at most until @p deadline (on the scale of clock_now()) or one
 *  minute, and calls the handlers of those that are ready. */
void poll_set_run(poll_set *set, double deadline);
void poll_set_free(poll_set *set);

#endif

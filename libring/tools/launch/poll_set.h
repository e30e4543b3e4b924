/* SPDX-License-Identifier: Apache-2.0
 *
 * poll_set: collects the descriptors that the program waits for, again for each wait. While the
 * terminal is slow, the descriptors of ranks are not added, so their output is not read.
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

void poll_set_clear(poll_set *set);
/** @param handle  called with @p context when one of @p events, or an error, is there. */
void poll_set_add(poll_set *set, int fd, short events, void (*handle)(void *context),
                  void *context);
/** Waits until a descriptor is ready or @p deadline (clock_now() scale), and handles it. */
void poll_set_run(poll_set *set, double deadline);
void poll_set_free(poll_set *set);

#endif

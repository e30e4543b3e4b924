/* SPDX-License-Identifier: Apache-2.0
 *
 * waits: what one poll() waits for, gathered anew each turn of a loop: descriptors, and the
 * earliest moment at which something is due anyway.
 */
#ifndef RING_BOOT_WAITS_H
#define RING_BOOT_WAITS_H

#include "base.h"

#include <poll.h>

typedef struct waits {
    struct pollfd *entries;
    size_t count, room;
    double until;
} waits;

/** Empties the set; it will wait at most until @p until. */
void waits_start(waits *w, double until);
ring_status waits_add(waits *w, int fd, short events);
/** Something is due at @p moment. */
void waits_due(waits *w, double moment);
/** Polls. RING_OK also when nothing happened. */
ring_status waits_poll(waits *w);
void waits_free(waits *w);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * warden: a small process that outlives the launcher for a moment. Ranks die with their
 * launcher by themselves; what they started does not. When the launcher is gone, even by
 * kill -9, the warden ends the process groups that it was told of. It is not their ancestor,
 * so what has left its group (setsid) is out of its reach.
 */
#ifndef LAUNCH_WARDEN_H
#define LAUNCH_WARDEN_H

#include "base.h"

#include <sys/types.h>

typedef struct warden {
    pid_t pid;
    int fd; /* its end of file is our death */
} warden;

ring_status warden_start(warden *w);
/** A process group exists / is gone. */
void warden_add(const warden *w, pid_t group);
void warden_remove(const warden *w, pid_t group);
/** Ends the warden in order; the groups are gone already. */
void warden_stop(warden *w);

#endif

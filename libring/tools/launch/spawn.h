/* SPDX-License-Identifier: Apache-2.0
 *
 * spawn: starting one child: its own process group, dead when we die, with three
 * descriptors and nothing else of ours.
 */
#ifndef LAUNCH_SPAWN_H
#define LAUNCH_SPAWN_H

#include "grow.h"

#include <sched.h>
#include <sys/types.h>

typedef struct spawn_plan {
    const char *path;
    char *const *argv;
    char *const *changes;  /* of the environment, for putenv(); NULL: none */
    int fds[3];            /* become 0, 1, 2; -1: a pipe to us      */
    int *ours;             /* [3] our ends of the pipes, -1: no pipe; they never block */
    int keep_fd;           /* stays open under its number, -1: none */
    const cpu_set_t *cpus; /* to run on, NULL: as we do             */
} spawn_plan;

/** Once, before anything else: missing standard descriptors are /dev/null; more descriptors may be
 *  open; a broken pipe is an error code, not a death. Existing children came with exec and get no
 *  signals. */
void spawn_prepare(void);

/** Blocks the signals that spawn_signal_fd() then reports. */
int spawn_signal_fd(void);

/** @return the child's pid; -1 with errno when it could not be started, exec included. */
pid_t spawn_start(const spawn_plan *plan);
/** Collects an ended child of spawn_start(). @return its wait status; -1 while it runs. */
int spawn_reap(pid_t pid);
/** Collects ended orphans: processes not started here. */
void spawn_reap_orphans(void);
/** Kills and collects all remaining children, known or not, except those that came with exec. */
void spawn_sweep(void);

#endif

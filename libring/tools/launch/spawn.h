/* SPDX-License-Identifier: Apache-2.0
 *
 * spawn: starts child processes. Each is the leader of a process group of its own, is killed when
 * this process ends, and inherits only three descriptors, and one more if that is wanted.
 */
#ifndef LAUNCH_SPAWN_H
#define LAUNCH_SPAWN_H

#include "grow.h"

#include <sched.h>
#include <sys/types.h>

typedef struct spawn_plan {
    const char *path;      /* of the program                         */
    char *const *argv;     /* its arguments, ended by NULL           */
    char *const *changes;  /* of the environment, for putenv(); NULL: none */
    int fds[3];            /* become 0, 1, 2; -1: a pipe to this process */
    int *ours;             /* [3] set to the ends of the pipes in this process, which do not block;
                              -1: no pipe */
    int keep_fd;           /* stays open with its number; -1: none   */
    const cpu_set_t *cpus; /* to run on; NULL: those of this process */
} spawn_plan;

/** To be called once, before all other functions. Opens /dev/null as missing standard descriptors,
 *  raises the limit of open files, and ignores SIGPIPE. Children that exist now, since a shell
 *  became this program by exec(), are noted, and spawn_sweep() spares them. */
void spawn_prepare(void);

/** Blocks SIGCHLD and the signals that ringrun handles. @return a signalfd() that reports them, or
 *  -1. */
int spawn_signal_fd(void);

/** Starts a child. @return its pid; -1, and errno, if fork() or exec() has failed. */
pid_t spawn_start(const spawn_plan *plan);
/** Reaps a child of spawn_start() if it has ended. @return its wait status; -1 while it runs. */
int spawn_reap(pid_t pid);
/** Reaps orphans that have ended: processes whose parent was a rank. */
void spawn_reap_orphans(void);
/** Kills and reaps all remaining children and orphans, except those that spawn_prepare() has noted.
 */
void spawn_sweep(void);

#endif

/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup: finds the cgroups that limit this process, so that callers can read their limits. Both
 * versions of cgroups may be in use on one machine.
 */
#ifndef RING_CGROUP_H
#define RING_CGROUP_H

/** A cgroup that this process is in. */
typedef struct cgroup {
    int version;        /* 1 or 2; the versions have different file names */
    const char *folder; /* contains its files, such as memory.max */
    const char *name;   /* its path below the mount point, for messages */
} cgroup;

/** Calls @p visit for each cgroup, of both versions, whose @p controller ("memory", "cpu") may
 * limit this process: its own cgroup, then each parent up to the topmost visible one.
 *  @param root  a prefix of all paths: "" for this machine; tests pass a folder with files of their
 *               own. */
void cgroup_visit(const char *root, const char *controller,
                  void (*visit)(const cgroup *at, void *context), void *context);

#endif

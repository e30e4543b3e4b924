/* SPDX-License-Identifier: Apache-2.0
 * cgroup: finding the cgroups that limit this process. */
#ifndef RING_CGROUP_H
#define RING_CGROUP_H

/** A cgroup that this process is in. */
typedef struct cgroup {
    int version;        /* 1 or 2: their files have different names */
    const char *folder; /* where its files are */
    const char *name;   /* for messages */
} cgroup;

/** Calls @p visit for the cgroups of both versions that @p controller ("memory", "cpu") may limit
 *  this process by: from its own to the topmost that can be seen.
 *  @param root  "" for this machine; tests give the folder of a made one. */
void cgroup_visit(const char *root, const char *controller,
                  void (*visit)(const cgroup *at, void *context), void *context);

#endif

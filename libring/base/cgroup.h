/* SPDX-License-Identifier: Apache-2.0
 *
 * cgroup: finds the cgroups that limit this process, so that callers can read their limits. Both
 * versions of cgroups may be in use on one machine.
 */
#ifndef RING_CGROUP_H
#define RING_CGROUP_H

/** A cgroup that this process is in. */
typedef struct cgroup {
    int version;        /* 1 or 2: their files have different names */
    const char *folder; /* where its files are */
    const char *name;   /* for messages */
} cgroup;

/** Calls @p visit for each cgroup, of both versions, through which @p controller ("memory", "cpu")
 *  may limit this process: from its own to the topmost visible one.
 *  @param root  "" for this machine; tests pass the folder of an artificial one. */
void cgroup_visit(const char *root, const char *controller,
                  void (*visit)(const cgroup *at, void *context), void *context);

#endif

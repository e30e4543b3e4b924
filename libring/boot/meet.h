/* SPDX-License-Identifier: Apache-2.0
 *
 * meet: how the ranks learn rank 0's unique id when the launcher names no address: through
 * PMIx, through PMI, or through a file in a directory they share. The first way that is
 * there on this machine is used; it is the same for all ranks of a launcher.
 */
#ifndef RING_BOOT_MEET_H
#define RING_BOOT_MEET_H

#include "boot.h"

typedef struct meeting meeting;

ring_status meet_open(const boot_launch *launch, const settings *s, double deadline,
                      meeting **out);
/** Rank 0: makes the id known to all ranks of the job, and to nobody else. */
ring_status meet_publish(meeting *m, const ring_unique_id *id);
/** Others. RING_IN_PROGRESS: not there yet. A later look may give another id, if the first
 *  was left over from a job that died. */
ring_status meet_look(meeting *m, ring_unique_id *id);
/** When all have joined, or it failed. */
void meet_close(meeting *m);

/** @return true if the launcher says that all ranks are on this host. */
bool meet_one_host(const boot_launch *launch);
/** Number of ranks of this PMIx job, where no variable tells. */
ring_status meet_pmix_size(int *size);

/* ---- The ways; each may assume that it is the only one ------------------------------- */

struct meeting {
    const struct meet_way *way;
    const settings *settings;
    double deadline;
    bool one_host;
    char key[64]; /* the same on all ranks, another for each communicator */
    void *state;
};

typedef struct meet_way {
    const char *name;
    /** RING_ERR_UNSUPPORTED: not here. */
    ring_status (*open)(meeting *m);
    ring_status (*publish)(meeting *m, const char *hex);
    /** The id as hex digits. */
    ring_status (*look)(meeting *m, char *hex, size_t size);
    void (*close)(meeting *m);
} meet_way;

extern const meet_way meet_by_pmix, meet_by_pmi, meet_by_file;

#endif

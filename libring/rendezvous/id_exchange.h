/* SPDX-License-Identifier: Apache-2.0
 *
 * id exchange: the ranks learn rank 0's unique id when the launcher names no address: through PMIx,
 * through PMI, or through a file in a directory they share. The first way that is available on this
 * machine is used; it is the same for all ranks of a launcher.
 */
#ifndef RING_RENDEZVOUS_ID_EXCHANGE_H
#define RING_RENDEZVOUS_ID_EXCHANGE_H

#include "launch.h"
#include "settings.h"

typedef struct id_exchange id_exchange;

ring_status id_exchange_open(const launch_info *launch, const settings *s, double deadline,
                             id_exchange **out);
/** Rank 0: publishes the id to all ranks of the job, and to no other process. */
ring_status id_exchange_publish(id_exchange *x, const ring_unique_id *id);
/** Rank 0: publishes its failure instead, by @p status and fail_text(), for long enough that the
 *  others see it. @return @p status. */
ring_status id_exchange_refuse(id_exchange *x, ring_status status);
/** Others. RING_IN_PROGRESS: not there yet. A later look may give another id, if the first was left
 *  over from a job that died. Else rank 0's failure, or this rank's. */
ring_status id_exchange_look(id_exchange *x, ring_unique_id *id);
/** Looks until there is one, or @p deadline has passed: RING_ERR_TIMEOUT, and the text gives the
 *  last obstacle. */
ring_status id_exchange_wait(id_exchange *x, double deadline, ring_unique_id *id);
/** To be called when all have joined, or joining failed. */
void id_exchange_close(id_exchange *x);

/** Number of ranks of this PMIx job, where no variable has it. */
ring_status exchange_pmix_size(int *size);

/* ---- The ways; each is written as if it were the only one ----------------------------- */

struct id_exchange {
    const struct exchange_way *way;
    const settings *settings;
    double deadline;
    bool one_host;
    char key[64]; /* the same on all ranks, another for each communicator */
    void *state;
};

typedef struct exchange_way {
    const char *name;
    /** RING_ERR_UNSUPPORTED: not here. */
    ring_status (*open)(id_exchange *x);
    ring_status (*publish)(id_exchange *x, const char *hex);
    /** The id as hex digits. */
    ring_status (*look)(id_exchange *x, char *hex, size_t size);
    void (*close)(id_exchange *x);
} exchange_way;

extern const exchange_way exchange_by_pmix, exchange_by_pmi, exchange_by_file;

#endif

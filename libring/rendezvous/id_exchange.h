/* SPDX-License-Identifier: Apache-2.0
 *
 * id exchange: passes rank 0's unique id to the other ranks when the launcher gives no address:
 * through PMIx, through PMI, or through a file in a shared directory. The first exchange that is
 * available on this machine is used, which is the same one for all ranks of a launcher.
 */
#ifndef RING_RENDEZVOUS_ID_EXCHANGE_H
#define RING_RENDEZVOUS_ID_EXCHANGE_H

#include "launch.h"
#include "settings.h"

typedef struct id_exchange id_exchange;

ring_status id_exchange_open(const launch_info *launch, const settings *s, double deadline,
                             id_exchange **out);
/** Publishes the id, at rank 0, to all ranks of the job and to no other process. */
ring_status id_exchange_publish(id_exchange *x, const ring_unique_id *id);
/** Publishes rank 0's failure instead, by @p status and fail_text(), and waits long enough for the
 *  others to see it. @return @p status. */
ring_status id_exchange_refuse(id_exchange *x, ring_status status);
/** Gets the id at another rank. A later look may return another id, if the first one was left over
 *  from a job that died.
 *  @return RING_IN_PROGRESS if there is no id yet; otherwise rank 0's failure or this rank's. */
ring_status id_exchange_look(id_exchange *x, ring_unique_id *id);
/** Looks until there is an id, or @p deadline has passed.
 *  @return RING_ERR_TIMEOUT after the deadline; the text is that of the last look. */
ring_status id_exchange_wait(id_exchange *x, double deadline, ring_unique_id *id);
/** Must be called after all ranks have joined, or joining has failed. */
void id_exchange_close(id_exchange *x);

/** Gets the number of ranks of this PMIx job, if no variable has it. */
ring_status exchange_pmix_size(int *size);

/* ---- The exchanges; each is written as if it were the only one ------------------------ */

struct id_exchange {
    const struct exchange_way *way;
    const settings *settings;
    double deadline;
    bool one_host;
    char key[64]; /* equal on all ranks, and different for each communicator */
    void *state;
};

typedef struct exchange_way {
    const char *name;
    /** @return RING_ERR_UNSUPPORTED if this exchange is not available. */
    ring_status (*open)(id_exchange *x);
    ring_status (*publish)(id_exchange *x, const char *hex);
    /** Gets the id as hex digits. */
    ring_status (*look)(id_exchange *x, char *hex, size_t size);
    void (*close)(id_exchange *x);
} exchange_way;

extern const exchange_way exchange_by_pmix, exchange_by_pmi, exchange_by_file;

#endif

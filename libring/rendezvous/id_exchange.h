/* SPDX-License-Identifier: Apache-2.0
 *
 * id exchange: passes rank 0's unique id to the other ranks if the launcher does not set
 * MASTER_ADDR. There are three exchanges: PMIx, PMI-1, and a file in a shared directory. Each rank
 * uses the first one that is available, which is the same on all ranks of one launcher.
 */
#ifndef RING_RENDEZVOUS_ID_EXCHANGE_H
#define RING_RENDEZVOUS_ID_EXCHANGE_H

#include "launch.h"
#include "settings.h"

typedef struct id_exchange id_exchange;

/** Opens the exchange for the next communicator that is made from the environment. @p deadline is
 *  that of the start. */
ring_status id_exchange_open(const launch_info *launch, const settings *s, double deadline,
                             id_exchange **out);
/** At rank 0: publishes the id to all ranks of the job. No other user can read it. */
ring_status id_exchange_publish(id_exchange *x, const ring_unique_id *id);
/** At rank 0: publishes its failure (@p status and fail_text()) instead of an id, and waits for a
 *  second, so that the other ranks can read it. @return @p status. */
ring_status id_exchange_refuse(id_exchange *x, ring_status status);
/** At the other ranks: gets the id, without waiting for rank 0 if possible. A later call may return
 *  another id, since the first one may be left over from a job that was killed.
 *  @return RING_OK; RING_IN_PROGRESS if there is no id yet; or an error: rank 0's failure, or a
 *  failure of the exchange. */
ring_status id_exchange_look(id_exchange *x, ring_unique_id *id);
/** Calls id_exchange_look() until it returns an id or an error, or @p deadline has passed.
 *  @return RING_ERR_TIMEOUT after the deadline, with the text of the last call. */
ring_status id_exchange_wait(id_exchange *x, double deadline, ring_unique_id *id);
/** Frees the exchange, and removes a published file. Must be called after all ranks have joined, or
 *  joining has failed. */
void id_exchange_close(id_exchange *x);

/** Asks PMIx for the number of ranks of this job. @return RING_OK or RING_ERR_CONFIG. */
ring_status exchange_pmix_size(int *size);

/* ---- For the implementations of exchanges --------------------------------------------- */

struct id_exchange {
    const struct exchange_way *way;
    const settings *settings;
    double deadline;
    bool one_host; /* all ranks are on this host */
    char key[64];  /* equal on all ranks, and different for each communicator */
    void *state;   /* of the implementation */
};

typedef struct exchange_way {
    const char *name; /* for messages */
    /** @return RING_ERR_UNSUPPORTED if this exchange is not available. */
    ring_status (*open)(id_exchange *x);
    /** Publishes the id, which @p hex has as hexadecimal digits. */
    ring_status (*publish)(id_exchange *x, const char *hex);
    /** Gets the id as hexadecimal digits, see id_exchange_look(). */
    ring_status (*look)(id_exchange *x, char *hex, size_t size);
    void (*close)(id_exchange *x);
} exchange_way;

extern const exchange_way exchange_by_pmix, exchange_by_pmi, exchange_by_file;

#endif

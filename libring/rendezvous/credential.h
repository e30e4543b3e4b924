/* SPDX-License-Identifier: Apache-2.0
 *
 * credential: a rank's means to join: the key that proves membership, and the addresses where rank
 * 0 may listen. It comes from a unique id, or from MASTER_ADDR, MASTER_PORT and the secret.
 */
#ifndef RING_RENDEZVOUS_CREDENTIAL_H
#define RING_RENDEZVOUS_CREDENTIAL_H

#include "address.h"
#include "launch.h"
#include "settings.h"

enum { CREDENTIAL_KEY = 32, CREDENTIAL_PLACES = 32, CREDENTIAL_AGENT_PORTS = 16 };

typedef struct credential {
    unsigned char key[CREDENTIAL_KEY];
    bool is_public;                    /* the key is no secret */
    bool check_uid;                    /* so the other side must be of our user */
    net_address at[CREDENTIAL_PLACES]; /* in the order to be tried */
    size_t places;
} credential;

/** Reads the secret and resolves the address. */
ring_status credential_from_launch(const launch_info *launch, const settings *s, double deadline,
                                   credential *out);
/** Rank 0: listens at the first place that is free; on success that is c->at[0]. RING_ADDR or
 *  RING_SOCKET_IFNAME are used if MASTER_ADDR is no address of this host. */
ring_status credential_listen(credential *c, const launch_info *launch, const settings *s,
                              double deadline, int *fd);

ring_status credential_from_id(const ring_unique_id *id, credential *out);
/** A new id with a random key for @p at. */
void credential_make_id(const net_address *at, ring_unique_id *id);

#endif

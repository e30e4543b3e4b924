/* SPDX-License-Identifier: Apache-2.0
 *
 * credential: holds the facts that a rank needs to join: the key that proves membership, and the
 * addresses where rank 0 may listen. They come from a unique id, or from MASTER_ADDR, MASTER_PORT
 * and the secret.
 */
#ifndef RING_RENDEZVOUS_CREDENTIAL_H
#define RING_RENDEZVOUS_CREDENTIAL_H

#include "address.h"
#include "launch.h"
#include "settings.h"

enum { CREDENTIAL_KEY = 32, CREDENTIAL_PLACES = 32, CREDENTIAL_AGENT_PORTS = 16 };

typedef struct credential {
    unsigned char key[CREDENTIAL_KEY];
    bool is_public;                    /* the key is not secret */
    bool check_uid;                    /* so every peer must belong to our user */
    net_address at[CREDENTIAL_PLACES]; /* in the order in which they are tried */
    size_t places;
} credential;

/** Reads the secret and resolves the address. */
ring_status credential_from_launch(const launch_info *launch, const settings *s, double deadline,
                                   credential *out);
/** Listens, at rank 0, at the first free place, which becomes c->at[0]. If MASTER_ADDR is not an
 *  address of this host, the address of RING_ADDR or RING_SOCKET_IFNAME is used. */
ring_status credential_listen(credential *c, const launch_info *launch, const settings *s,
                              double deadline, int *fd);

ring_status credential_from_id(const ring_unique_id *id, credential *out);
/** Makes an id with a random key and the address @p at. */
void credential_make_id(const net_address *at, ring_unique_id *id);

#endif

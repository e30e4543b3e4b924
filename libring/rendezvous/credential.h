/* SPDX-License-Identifier: Apache-2.0
 *
 * credential: holds all that a rank needs to join: the key that proves its membership, and the
 * addresses at which rank 0 may listen. They are made from a unique id, or from MASTER_ADDR,
 * MASTER_PORT and the secret.
 */
#ifndef RING_RENDEZVOUS_CREDENTIAL_H
#define RING_RENDEZVOUS_CREDENTIAL_H

#include "address.h"
#include "launch.h"
#include "settings.h"

enum {
    CREDENTIAL_KEY = 32,        /* bytes of the key */
    CREDENTIAL_PLACES = 32,     /* the most addresses of a credential */
    CREDENTIAL_AGENT_PORTS = 16 /* ports to try above MASTER_PORT if torchrun's agent uses it */
};

typedef struct credential {
    unsigned char key[CREDENTIAL_KEY];
    bool is_public; /* there is no secret, so any process can compute the key */
    bool check_uid; /* every peer must be a process of this user, because the key is public */
    net_address at[CREDENTIAL_PLACES]; /* [places] of rank 0, in the order in which to try them */
    size_t places;
    net_address maker; /* of an id that any process may make: the maker, which tells the ranks rank
                          0's address; length 0: rank 0 listens at at[0] */
} credential;

/** Makes the credential from the launch variables: reads the secret, and resolves MASTER_ADDR by
 *  @p deadline. @return RING_OK, RING_ERR_CONFIG, RING_ERR_TIMEOUT or RING_ERR_SYSTEM. */
ring_status credential_from_launch(const launch_info *launch, const settings *s, double deadline,
                                   credential *out);
/** Opens rank 0's listener on the first address of @p c that is free, which becomes c->at[0]. If
 *  MASTER_ADDR is not an address of this host, it listens on the address that RING_ADDR or
 *  RING_SOCKET_IFNAME chooses. */
ring_status credential_listen(credential *c, const launch_info *launch, const settings *s,
                              double deadline, int *fd);

/** Makes the credential from a unique id. @return RING_OK or RING_ERR_ARGUMENT. */
ring_status credential_from_id(const ring_unique_id *id, credential *out);
/** Makes a unique id of a random key and the address @p at, where rank 0 will listen.
 *  @param served  its maker listens there instead. */
void credential_make_id(const net_address *at, bool served, ring_unique_id *id);

#endif
